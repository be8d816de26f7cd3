//! The store on servers: on scripted ones always, on emulators with the feature `emulators`.

mod answers;

#[cfg(feature = "emulators")]
mod claims;
#[cfg(feature = "emulators")]
mod fixture;
#[cfg(feature = "emulators")]
mod listing;
#[cfg(feature = "emulators")]
mod protocol;

/// Makes every case a test on each emulator: one returns what stands under a key with its refusal, the other does not.
#[cfg(feature = "emulators")]
macro_rules! on_both {
    ($($case:ident,)*) => {
        mod moto {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $case() {
                super::$case(&crate::dynamodb::tests::fixture::Table::on_moto().await).await;
            })*
        }
        mod dynalite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $case() {
                super::$case(&crate::dynamodb::tests::fixture::Table::on_dynalite().await).await;
            })*
        }
    };
}
#[cfg(feature = "emulators")]
use on_both;
