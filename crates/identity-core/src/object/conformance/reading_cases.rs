//! Cases that ask for one object: what `head` and `read` promise.

use super::{Case, CaseResult, Suite, ensure};
use crate::{
    identity::{ObjectVersion, Provider, TokenKind, VersionToken},
    object::ObjectError,
};

pub(super) async fn run(suite: &Suite<'_>) -> Vec<Case> {
    vec![
        ("an object is read as it was written", written(suite).await),
        ("other bytes are another version", overwritten(suite).await),
        ("a removed object is not there", removed(suite).await),
        (
            "an object that never was is not there",
            never_written(suite).await,
        ),
        (
            "a container that is not there is an error",
            missing_container(suite).await,
        ),
        (
            "an object of another provider is an error",
            elsewhere(suite).await,
        ),
    ]
}

async fn written(suite: &Suite<'_>) -> CaseResult {
    for (key, content) in [
        ("written/a.shp", &b"\0shapes\xff"[..]),
        ("written/empty", b""),
    ] {
        let address = suite.put(key, content).await;
        let head = suite.present(&address).await?;
        ensure!(
            head.size == content.len() as u64,
            "{} bytes were written, a HEAD tells {}",
            content.len(),
            head.size
        );
        let read = suite.read(&address, &head.token).await?;
        ensure!(
            read.as_deref() == Some(content),
            "{key}: wrote {content:?}, read {read:?}"
        );
        let again = suite.present(&address).await?;
        ensure!(
            again == head,
            "nothing was written between two HEADs, which tell {head:?} and {again:?}"
        );
    }
    Ok(())
}

async fn overwritten(suite: &Suite<'_>) -> CaseResult {
    let address = suite.put("overwritten/a.shp", b"first").await;
    let first = suite.present(&address).await?;
    suite.put("overwritten/a.shp", b"other").await;
    let second = suite.present(&address).await?;
    ensure!(
        first.token != second.token,
        "two versions have the token {}",
        first.token
    );
    let read = suite.read(&address, &second.token).await?;
    ensure!(
        read.as_deref() == Some(b"other"),
        "the newer version reads {read:?}"
    );
    // A store that keeps versions still has it.
    let read = suite.read(&address, &first.token).await?;
    ensure!(
        read.as_deref().is_none_or(|bytes| bytes == b"first"),
        "a read pinned to the older version gives {read:?}"
    );
    Ok(())
}

async fn removed(suite: &Suite<'_>) -> CaseResult {
    let address = suite.put("removed/a.shp", b"was here").await;
    let head = suite.present(&address).await?;
    suite.subject.delete(&address).await;
    let after = suite.head(&address).await?;
    ensure!(
        after.is_none(),
        "it was removed, and a HEAD tells {after:?}"
    );
    let read = suite.read(&address, &head.token).await?;
    ensure!(
        read.as_deref().is_none_or(|bytes| bytes == b"was here"),
        "it was removed, and its version reads {read:?}"
    );
    Ok(())
}

async fn never_written(suite: &Suite<'_>) -> CaseResult {
    let neighbour = suite.put("never/a.shp", b"").await;
    let token = suite.present(&neighbour).await?.token;
    for key in [
        "never/a.sh",
        "never/a.shpx",
        "never",
        "never/a.shp/b",
        "nowhere/at/all",
    ] {
        let address = suite.address(key);
        let head = suite.head(&address).await?;
        ensure!(head.is_none(), "{key} was never written: {head:?}");
        // A version ID of another object is an error at some stores: no bytes, in any case.
        if let Ok(read) = suite.read(&address, &token).await {
            ensure!(read.is_none(), "{key} was never written: {read:?}");
        }
    }
    Ok(())
}

async fn missing_container(suite: &Suite<'_>) -> CaseResult {
    let (store, address) = (suite.subject.store(), suite.subject.missing_container());
    let head = store.head(&address).await;
    ensure!(
        matches!(head, Err(ObjectError::Unavailable { .. })),
        "there is no such container: {head:?}"
    );
    let object = suite.put("missing/a.shp", b"").await;
    let token = suite.present(&object).await?.token;
    let read = store.read(&ObjectVersion { address, token }).await;
    ensure!(
        matches!(read, Err(ObjectError::Unavailable { .. })),
        "there is no such container: {:?}",
        read.map(|_| "a stream")
    );
    Ok(())
}

async fn elsewhere(suite: &Suite<'_>) -> CaseResult {
    let (store, here) = (suite.subject.store(), suite.subject.container());
    ensure!(
        store.reads(here.provider),
        "it does not read {} itself",
        here.provider.as_str()
    );
    for provider in Provider::ALL
        .into_iter()
        .filter(|other| !store.reads(*other))
    {
        let mut address = suite.address("elsewhere/a.shp");
        address.provider = provider;
        let head = store.head(&address).await;
        ensure!(
            matches!(head, Err(ObjectError::Unavailable { .. })),
            "an object in {} : {head:?}",
            provider.as_str()
        );
        let token = VersionToken::new(TokenKind::ETag, "e1").map_err(|error| error.to_string())?;
        let read = store.read(&ObjectVersion { address, token }).await;
        ensure!(read.is_err(), "a version in {} was read", provider.as_str());
    }
    Ok(())
}
