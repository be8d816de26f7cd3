//! A model of workers, a store, a source and other people around the shipped claim protocol, for `stateright`.
//!
//! Nothing of the protocol is written here again. A worker's claim is a [`Claiming`], its renewals and its end are
//! [`Holding`]s, its answer to the source is [`Outcome::disposition`], an operator's release is [`released`]: the values
//! that the shipped driver and gate step. What is written here is what surrounds them, and it is as bad as
//! the bounds let it be: deliveries come twice or not at all, the store loses replies, fails, and lets writes take
//! place late or twice, workers crash or freeze at every step, their clocks differ by more than a lease, another
//! program flips rows to `done`, and expired rows are deleted.
//!
//! Time goes in steps of a lease, and only while it matters to somebody; every fault costs some of a budget. So there
//! are no cycles, and a state that nothing follows is an end of the world, at which every job must have ended.
//!
//! [`Claiming`]: identity_core::claim::machine::Claiming
//! [`Holding`]: identity_core::claim::machine::Holding
//! [`Outcome::disposition`]: identity_core::gate::Outcome::disposition
//! [`released`]: identity_core::claim::machine::released

mod actions;
mod asking;
mod bounds;
mod control;
mod properties;
mod run;
mod state;
mod store;
mod surroundings;
mod worker;

pub use actions::Action;
pub use bounds::{Bounds, Budget, LARGE, SMALL};
pub use control::Control;
pub use properties::{NEVER, SOMETIMES};
pub use run::{Found, Report, check, counterexample};
pub use state::State;

use state::Log;

/// The model: bounds, and what is broken on purpose, if anything.
#[derive(Debug, Clone)]
pub struct World {
    /// How much there is of everything.
    pub bounds: Bounds,
    /// What is broken on purpose.
    pub control: Option<Control>,
}

impl stateright::Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(&self.bounds)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.possible(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.act(&mut next, action, &mut Log::silent());
        Some(next)
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        properties::all()
    }
}
