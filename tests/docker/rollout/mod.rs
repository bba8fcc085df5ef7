//! Rollouts of models in real containers. The models are replayed recordings, or simulated ones
//! behind faulty endpoints.

mod copies;
mod deadlines;
mod dialects;
mod endings;
mod faults;
mod installed;
mod kept;
mod kills;
mod lost_states;
mod openings;
mod pauses;
mod recorded;
mod refusals;
mod scaffolds;
mod solver;
mod summaries;
