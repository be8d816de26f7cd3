//! What `run` tells: a line for each event, a progress bar for people, the counts at the end.

use std::{io, time::Duration};

use identity_core::gate::{Counts, Outcome, Settled};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::output;

/// Tells people or programs how a run goes.
#[derive(Debug)]
pub(crate) struct Report {
    json: bool,
    counts: Counts,
    bar: ProgressBar,
    /// Why nothing more can be told.
    broken: Option<io::Error>,
}

impl Report {
    /// A report for people, or as JSON for programs.
    pub(crate) fn new(json: bool) -> Self {
        // On standard error, and only if that is a terminal.
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self {
            json,
            counts: Counts::default(),
            bar,
            broken: None,
        }
    }

    /// `more` events were found.
    pub(crate) fn found(&self, more: u64) {
        self.bar.inc_length(more);
    }

    /// An event has come to its end in this run.
    pub(crate) fn settled(&mut self, settled: &Settled, label: &str) {
        let Settled { key, uri, outcome } = settled;
        let subject = uri.as_deref().unwrap_or(label);
        self.counts.count(outcome);
        let complaint = match outcome {
            Outcome::Done { .. }
            | Outcome::Duplicate
            | Outcome::Ignored(_)
            | Outcome::Waiting { .. } => None,
            Outcome::Held { .. } => Some("held by another worker".to_owned()),
            Outcome::LeaseLost { .. } => Some("failed: the claim was lost".to_owned()),
            Outcome::Failed { error, .. } | Outcome::Unavailable { error, .. } => {
                Some(format!("failed: {error}"))
            }
            Outcome::Rejected { reason, error } => {
                Some(format!("rejected ({}): {error}", reason.as_str()))
            }
            Outcome::Unkept { reason, error } => Some(format!(
                "rejected ({}), and too long to be kept: keep it: {error}",
                reason.as_str()
            )),
        };
        if let Some(complaint) = &complaint {
            self.complain(&format!("{subject}: {complaint}"));
        }
        if self.json {
            self.print(&json!({
                "uri": uri,
                "job_id": key.as_ref().map(|key| key.as_str()),
                "outcome": outcome.as_str(),
                "reason": outcome.reason(),
                "error": outcome.error(),
                "source": label,
            }));
        }
        self.progress();
    }

    /// Something in a folder is no object.
    pub(crate) fn ignored(&mut self) {
        self.counts.ignored += 1;
        self.progress();
    }

    /// Something could not even be looked at.
    pub(crate) fn failed(&mut self, what: &str) {
        self.counts.failed += 1;
        self.complain(what);
        if self.json {
            self.print(&json!({"outcome": "failed", "error": what}));
        }
        self.progress();
    }

    fn progress(&self) {
        let Told {
            processed,
            skipped,
            failed,
            rejected,
            ..
        } = Told::of(&self.counts);
        self.bar.set_message(format!(
            "processed {processed}, skipped {skipped}, failed {}",
            failed + rejected
        ));
        self.bar.inc(1);
    }

    /// Says what is wrong, without tearing the bar.
    pub(crate) fn complain(&self, text: &str) {
        self.bar.suspend(|| output::complain(text));
    }

    fn print(&mut self, value: &serde_json::Value) {
        if self.broken.is_none() {
            self.broken = self.bar.suspend(|| output::line(&value.to_string())).err();
        }
    }

    /// Why standard output takes no more lines, once that is so.
    pub(crate) fn broken(&mut self) -> Option<io::Error> {
        self.broken.take()
    }

    /// The last line. Returns the counts.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if standard output takes it no more.
    pub(crate) fn finish(self) -> io::Result<Counts> {
        self.bar.finish_and_clear();
        let Told {
            processed,
            skipped,
            held,
            ignored,
            failed,
            rejected,
        } = Told::of(&self.counts);
        output::line(&if self.json {
            json!({"processed": processed, "skipped": skipped, "held": held, "ignored": ignored, "failed": failed,
                "rejected": rejected})
            .to_string()
        } else {
            format!(
                "processed={processed} skipped={skipped} held={held} ignored={ignored} failed={failed} rejected={rejected}"
            )
        })?;
        Ok(self.counts)
    }
}

/// The counts as a run tells them.
struct Told {
    processed: u64,
    skipped: u64,
    held: u64,
    ignored: u64,
    /// Failed each time, or could not be told.
    failed: u64,
    rejected: u64,
}

impl Told {
    fn of(counts: &Counts) -> Self {
        Self {
            processed: counts.done,
            skipped: counts.duplicate,
            held: counts.held,
            // Not whole yet, and recorded as waiting: no job yet.
            ignored: counts.ignored + counts.waiting,
            failed: counts.failed + counts.unavailable,
            rejected: counts.rejected + counts.collapsed,
        }
    }
}
