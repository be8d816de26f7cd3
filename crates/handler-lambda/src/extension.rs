//! How the process ends: on a signal, once the running invocation is answered; or at the start, with a reason.
//!
//! Lambda sends SIGTERM before it kills a process only if an extension is registered, so an internal one that wants no
//! events is. It then leaves 500 milliseconds. <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-extensions-api.html>

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use host::{signals::Signals, worker::Worker};
use lambda_runtime::{
    LambdaInvocation,
    tower::{Layer, Service},
};
use lambda_runtime_api_client::{BoxError, Client, body::Body};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const EXTENSION: &str = "firstclaim";

/// Listens to signals from now on, and has Lambda send one. Without the extension the function works as well, but is
/// killed without a word.
pub(crate) async fn listen() -> std::io::Result<Signals> {
    let signals = Signals::listen()?;
    if let Err(error) = register().await {
        tracing::warn!(error = %error, "no signal will come before the end: the extension is not registered");
    }
    Ok(signals)
}

/// Registers an extension that no event wakes, and leaves its request for the next one open for ever, which tells Lambda
/// that it is ready.
async fn register() -> Result<(), BoxError> {
    let client = Client::builder().build()?;
    let request = lambda_runtime_api_client::build_request()
        .method("POST")
        .uri("/2020-01-01/extension/register")
        .header("Lambda-Extension-Name", EXTENSION)
        .body(Body::from(json!({"events": []}).to_string()))?;
    let registered = client.call(request).await?;
    let id = registered.headers().get("Lambda-Extension-Identifier");
    let Some(id) = id.filter(|_| registered.status().is_success()) else {
        return Err(format!("the answer is {}", registered.status()).into());
    };
    let next = lambda_runtime_api_client::build_request()
        .method("GET")
        .uri("/2020-01-01/extension/event/next")
        .header("Lambda-Extension-Identifier", id)
        .body(Body::empty())?;
    tokio::spawn(async move {
        let _answer = client.call(next).await;
        std::future::pending::<()>().await;
    });
    Ok(())
}

/// Returns once a signal has come, everything that runs was stopped and recorded, and its invocation was answered.
pub(crate) async fn after(mut signals: Signals, worker: &Worker, busy: &Busy) {
    signals.next().await;
    tracing::info!("stopping");
    // Within half a second, in which the ends have to be recorded, too, Lambda kills all.
    // <https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html#runtimes-lifecycle-shutdown>
    worker.stop_within(Duration::ZERO);
    // The semaphore is never closed, so this ends only once the invocation was answered.
    let _idle = busy.0.acquire().await;
}

/// Tells Lambda why there is no function, so that whoever invokes it is told.
/// <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html#runtimes-api-initerror>
pub(crate) async fn report_failed_start(what: &str) {
    let report = async {
        let body = json!({"errorType": "firstclaim.Start", "errorMessage": what}).to_string();
        let request = lambda_runtime_api_client::build_request()
            .method("POST")
            .uri("/2018-06-01/runtime/init/error")
            .header("Lambda-Runtime-Function-Error-Type", "firstclaim.Start")
            .body(Body::from(body))?;
        Client::builder().build()?.call(request).await
    };
    if let Err(error) = report.await {
        tracing::warn!(error = %error, "the runtime API was not told");
    }
}

/// Whether an invocation is running: from when it is taken until it is answered.
#[derive(Debug, Clone)]
pub(crate) struct Busy(Arc<Semaphore>);

impl Default for Busy {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl<S> Layer<S> for Busy {
    type Service = Watched<S>;

    fn layer(&self, inner: S) -> Watched<S> {
        Watched {
            inner,
            busy: self.clone(),
        }
    }
}

/// The runtime's own service, whose calls last until the answer is sent.
#[derive(Debug, Clone)]
pub(crate) struct Watched<S> {
    inner: S,
    busy: Busy,
}

impl<S> Service<LambdaInvocation> for Watched<S>
where
    S: Service<LambdaInvocation, Response = (), Error = BoxError>,
    S::Future: 'static,
{
    type Response = ();
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<(), BoxError>>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, invocation: LambdaInvocation) -> Self::Future {
        // Invocations come one after the other, so there is one to be had.
        let running: Option<OwnedSemaphorePermit> = self.busy.0.clone().try_acquire_owned().ok();
        let call = self.inner.call(invocation);
        Box::pin(async move {
            let answered = call.await;
            drop(running);
            answered
        })
    }
}
