//! Labels: the detectors against trajectories with labels by hand, and the model judge against an
//! endpoint.

mod model;
mod real;
mod table;
