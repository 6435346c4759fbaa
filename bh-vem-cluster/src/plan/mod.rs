//! Plans: the cuts of arrays, the work of ranks, and the transfers for it. Every rank has the same planner.

mod adopted;
pub mod align;
pub mod array;
pub mod boxes;
mod broadcast;
pub mod choice;
pub mod chunks;
pub mod columns;
pub mod coverage;
pub mod exchange;
pub mod fetch;
pub mod fold;
pub mod grid;
pub mod layout;
pub mod methods;
pub mod operate;
#[cfg(debug_assertions)]
pub mod order;
pub mod overlap;
pub mod panels;
pub mod partial;
#[cfg(test)]
mod per_rank;
pub mod planner;
pub mod plans;
pub mod product;
pub mod rates;
pub mod redistribute;
pub mod settings;
pub mod single_rank;
pub mod sort_select;
pub mod stage;
pub mod stages;
pub mod tall;
#[cfg(debug_assertions)]
pub mod versions;
pub mod workers;
