//! Labels of failures: the detectors are compared with labels by hand, and the model judge is
//! tested against an endpoint.

mod model;
mod real;
mod table;
