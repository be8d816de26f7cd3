//! Serving until the process is told to end, and then for as long as there is time.

use std::{io, time::Duration};

use axum::{Router, extract::State, http::StatusCode, routing::get};
use tokio::net::TcpListener;

use crate::http::intake::Intake;

/// How long answers may take to go out once their work has ended, and requests that are still arriving to be refused.
const ANSWERING: Duration = Duration::from_millis(500);

/// How long the end of a process may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    /// How long jobs that run may go on. Then they are stopped.
    pub jobs: Duration,
    /// How long recording their ends may take after that.
    pub ends: Duration,
}

/// Serves `app`, whose deliveries go through `intake`, and `GET /health` beside it, until `stop` is ready. Then nothing new is
/// taken, what was taken gets its time, what still runs is recorded as `failed(interrupted)`, and this returns: after
/// `drain.jobs + drain.ends` and half a second at the latest.
///
/// Health says that this process serves, and 503 once it ends. It asks nothing of the claim store: a store that is away is
/// no reason to end processes that will be wanted when it is back.
///
/// # Errors
///
/// [`io::Error`] if serving fails.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    intake: Intake,
    stop: impl Future<Output = ()>,
    drain: Drain,
) -> io::Result<()> {
    let app = app.route("/health", get(health).with_state(intake.clone()));
    let serving = axum::serve(listener, app).with_graceful_shutdown(intake.closing());
    let mut serving = tokio::spawn(serving.into_future());
    tokio::select! {
        // It ends by itself only if it fails.
        ended = &mut serving => return ended.map_err(io::Error::other)?,
        () = stop => {}
    }
    tracing::info!("stopping: nothing new is taken");
    intake.close();
    let clock = intake.worker().clock().clone();
    let ended = tokio::select! {
        () = intake.ended() => true,
        () = clock.sleep(drain.jobs) => false,
    };
    if !ended {
        tracing::warn!("the time for jobs is over: what runs is stopped");
        // The other half is for their ends.
        intake.worker().stop_within(drain.ends / 2);
        tokio::select! {
            () = intake.ended() => {}
            () = clock.sleep(drain.ends) => {
                tracing::error!("not every end was recorded in time: leases end by themselves");
            }
        }
    }
    tokio::select! {
        ended = &mut serving => ended.map_err(io::Error::other)?,
        // Somebody has a connection open and says nothing.
        () = clock.sleep(ANSWERING) => {
            serving.abort();
            Ok(())
        }
    }
}

async fn health(State(intake): State<Intake>) -> StatusCode {
    if intake.is_closed() {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    StatusCode::OK
}
