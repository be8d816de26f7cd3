//! `bootstrap`: exactly-once jobs from storage events, as a function on AWS Lambda.
//!
//! The reader's way: [`configuration`] (the environment and the compiled-in contract → a worker, connections open) →
//! [`invocation`] (a delivery is settled, or a sweep done, and the source told what must come again), which asks [`deadline`]
//! how long it may take, [`visibility`] when held messages come again, and [`emf`] to tell what happened. [`extension`] is how
//! Lambda ends it.

mod configuration;
mod deadline;
mod emf;
mod extension;
mod invocation;
mod visibility;

use std::{process::ExitCode, sync::Arc};

use host::{log, settings::LogFormat};
use identity_core::text::error_chain;
use lambda_runtime::{LambdaEvent, Runtime, service_fn};
use serde_json::value::RawValue;

use crate::extension::Busy;

/// One thread: jobs are processes of their own, and what else there is waits for the network.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let handler = match configuration::configure().await {
        Ok(handler) => Arc::new(handler),
        Err(error) => {
            let what = error_chain(&error);
            log::start_anyway(LogFormat::Json);
            tracing::error!(error = what, "the function cannot be started");
            extension::report_failed_start(&what).await;
            return ExitCode::FAILURE;
        }
    };
    let signals = match extension::listen().await {
        Ok(signals) => signals,
        Err(error) => {
            tracing::error!(error = %error, "signals cannot be listened to");
            return ExitCode::FAILURE;
        }
    };
    let busy = Busy::default();
    let serve = {
        let handler = handler.clone();
        service_fn(move |event: LambdaEvent<Box<RawValue>>| {
            let handler = handler.clone();
            async move { handler.handle(&event.payload, &event.context).await }
        })
    };
    let runtime = Runtime::new(serve).layer(busy.clone());
    tokio::select! {
        ended = runtime.run() => match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                tracing::error!(error = %error, "the runtime API cannot be reached");
                ExitCode::FAILURE
            }
        },
        () = extension::after(signals, &handler.worker, &busy) => ExitCode::SUCCESS,
    }
}
