//! The signals that ask a program to stop, as one stream.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, termination, and a terminal that hangs up. While a value of this lives, they no longer kill the process.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if the program was started so as to outlive its terminal (`nohup`).
    hangup: Option<Signal>,
}

impl Signals {
    /// Listens to them from now on.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the system refuses.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if hangup_is_ignored() {
                None
            } else {
                Some(signal(SignalKind::hangup())?)
            },
        })
    }

    /// Returns when the next one has come.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            Some(_) = next_of(&mut self.hangup) => {}
        }
    }
}

async fn next_of(signal: &mut Option<Signal>) -> Option<()> {
    signal.as_mut()?.recv().await
}

/// Whether hang-ups are ignored already. Linux tells it in a mask whose lowest bit is the first signal, SIGHUP; where
/// it is not told, they are listened to.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}
