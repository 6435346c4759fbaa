//! Plans: where arrays are cut, who computes what, and what must move for it. Every rank has the same planner.

pub mod align;
pub mod alone;
#[cfg(test)]
mod apart;
pub mod array;
pub mod boxes;
pub mod choice;
pub mod columns;
pub mod dealing;
pub mod exchange;
pub mod fetch;
pub mod fold;
pub mod grid;
pub mod held;
mod homes;
pub mod layout;
pub mod mesh;
pub mod meshed;
pub mod meshfold;
pub mod meshmove;
mod meshwork;
pub mod methods;
pub mod near;
pub mod operate;
#[cfg(debug_assertions)]
pub mod order;
pub mod overlap;
pub mod panels;
pub mod partial;
pub mod planner;
pub mod plans;
pub mod product;
pub mod rates;
pub mod recut;
pub mod round;
pub mod settings;
pub mod stage;
pub mod stages;
pub mod tall;
#[cfg(debug_assertions)]
pub mod versions;
