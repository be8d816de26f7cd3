//! How much there is of everything, for each configuration that is checked.

/// How often each thing that is not bound to happen may happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// The store loses a reply, fails before a write, lets it take place late, or is sent it twice.
    pub faults: u8,
    /// A lease's length of time passes while a worker is busy or a message is ready. (While all is quiet, it passes as
    /// it likes.)
    pub delays: u8,
    /// A worker goes away without a word.
    pub crashes: u8,
    /// The source delivers a message once more, whether or not it was acknowledged.
    pub duplicates: u8,
    /// A delivery is lost on its way to a worker.
    pub losses: u8,
    /// The source gives up a message that is not acknowledged; from then on there is the sweeper.
    pub given_up: u8,
    /// A job fails.
    pub failures: u8,
    /// A job says that no attempt can succeed.
    pub rejections: u8,
    /// A lease is renewed.
    pub renewals: u8,
    /// A worker that was frozen past its lease ends its attempt as if nothing had happened.
    pub zombies: u8,
    /// Another program sets a row's status to `done`, whatever it is.
    pub flips: u8,
    /// The store deletes a row whose `expires_at` has passed.
    pub deletions: u8,
    /// An operator releases a claim.
    pub releases: u8,
}

/// One configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// What it is about.
    pub name: &'static str,
    /// For each worker, how many leases its wall clock is ahead.
    pub clocks: &'static [i64],
    /// How many jobs there are.
    pub jobs: usize,
    /// The terms' `max_attempts`.
    pub max_attempts: u32,
    /// After how many errors a call is given up.
    pub patience: u8,
    /// Whether the store tells what stands there when it refuses a write.
    pub store_tells: bool,
    /// Whether time may pass, and others act, between the store's doing and the worker's hearing of it.
    pub slow_replies: bool,
    /// What may happen how often.
    pub budget: Budget,
    /// How many states there are. Pinned: a change of the protocol shows.
    pub states: usize,
}

const NOTHING: Budget = Budget {
    faults: 0,
    delays: 0,
    crashes: 0,
    duplicates: 0,
    losses: 0,
    given_up: 0,
    failures: 0,
    rejections: 0,
    renewals: 0,
    zombies: 0,
    flips: 0,
    deletions: 0,
    releases: 0,
};

const TWO: Bounds = Bounds {
    name: "",
    clocks: &[0, 0],
    jobs: 1,
    max_attempts: 2,
    patience: 5,
    store_tells: true,
    slow_replies: false,
    budget: NOTHING,
    states: 0,
};

/// What the tests check: each kind of trouble by itself and with its nearest kin.
pub const SMALL: &[Bounds] = &[
    Bounds {
        name: "a store in trouble",
        budget: Budget {
            faults: 1,
            delays: 1,
            crashes: 1,
            duplicates: 1,
            ..NOTHING
        },
        states: 105_447,
        ..TWO
    },
    Bounds {
        name: "a store that tells nothing, and callers without patience",
        patience: 1,
        store_tells: false,
        budget: Budget {
            faults: 2,
            delays: 1,
            renewals: 1,
            ..NOTHING
        },
        states: 7_269,
        ..TWO
    },
    Bounds {
        name: "slow replies",
        slow_replies: true,
        budget: Budget {
            faults: 1,
            delays: 1,
            duplicates: 1,
            ..NOTHING
        },
        states: 62_922,
        ..TWO
    },
    Bounds {
        name: "clocks two leases apart",
        clocks: &[0, 2],
        budget: Budget {
            delays: 2,
            duplicates: 1,
            renewals: 1,
            zombies: 1,
            ..NOTHING
        },
        states: 27_543,
        ..TWO
    },
    Bounds {
        name: "three workers",
        clocks: &[-2, 0, 2],
        budget: Budget {
            delays: 1,
            duplicates: 2,
            zombies: 1,
            ..NOTHING
        },
        states: 238_166,
        ..TWO
    },
    Bounds {
        name: "two jobs",
        jobs: 2,
        max_attempts: 1,
        budget: Budget {
            faults: 1,
            delays: 1,
            ..NOTHING
        },
        states: 10_871,
        ..TWO
    },
    Bounds {
        name: "jobs that fail, and a source that gives up",
        budget: Budget {
            delays: 1,
            duplicates: 1,
            losses: 1,
            given_up: 1,
            failures: 2,
            rejections: 1,
            ..NOTHING
        },
        states: 23_664,
        ..TWO
    },
    Bounds {
        name: "other programs",
        budget: Budget {
            faults: 1,
            delays: 1,
            failures: 1,
            renewals: 1,
            zombies: 1,
            flips: 1,
            ..NOTHING
        },
        states: 5_298,
        ..TWO
    },
    Bounds {
        name: "deletion of what has expired",
        clocks: &[0, -2],
        budget: Budget {
            delays: 2,
            duplicates: 2,
            zombies: 1,
            deletions: 1,
            ..NOTHING
        },
        states: 122_063,
        ..TWO
    },
    Bounds {
        name: "an operator",
        budget: Budget {
            faults: 1,
            delays: 1,
            failures: 1,
            releases: 1,
            ..NOTHING
        },
        states: 655_164,
        ..TWO
    },
];

/// What `cargo xtask prove` checks beside them: more trouble at once.
pub const LARGE: &[Bounds] = &[
    Bounds {
        name: "a store in much trouble",
        budget: Budget {
            faults: 2,
            delays: 1,
            duplicates: 1,
            renewals: 1,
            ..NOTHING
        },
        states: 690_523,
        ..TWO
    },
    Bounds {
        name: "trouble everywhere",
        clocks: &[0, 2],
        budget: Budget {
            faults: 1,
            delays: 2,
            crashes: 1,
            duplicates: 1,
            renewals: 1,
            zombies: 1,
            ..NOTHING
        },
        states: 5_593_603,
        ..TWO
    },
    Bounds {
        name: "slow replies to renewals",
        slow_replies: true,
        budget: Budget {
            faults: 1,
            delays: 1,
            duplicates: 1,
            renewals: 1,
            ..NOTHING
        },
        states: 264_589,
        ..TWO
    },
];
