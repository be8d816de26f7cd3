//! Cases that list: what `list` promises.

use std::num::NonZeroU32;

use super::{Case, CaseResult, Suite, ensure, shown};
use crate::{
    claim::UnixMillis,
    identity::{ObjectAddress, Provider},
    object::{Listed, ObjectError},
    text::error_chain,
};

pub(super) async fn run(suite: &Suite<'_>) -> Vec<Case> {
    vec![
        (
            "a listing holds what begins with its prefix, and nothing else",
            exact_prefix(suite).await,
        ),
        ("a listing tells each key exactly", odd_keys(suite).await),
        (
            "a key that is a prefix of others is listed with them",
            whole_key(suite).await,
        ),
        (
            "a listing is of what is there now",
            strongly_consistent(suite).await,
        ),
        (
            "a token of a listing is the one that a HEAD tells",
            tokens(suite).await,
        ),
        ("a listing tells times in milliseconds", times(suite).await),
        ("a listing of several pages is whole", pages(suite).await),
        (
            "a listing of more than there may be is an error",
            too_many(suite).await,
        ),
        ("nothing begins so: an empty listing", nothing(suite).await),
        (
            "a listing in a container that is not there is an error",
            missing_container(suite).await,
        ),
        (
            "a listing at another provider is an error",
            elsewhere(suite).await,
        ),
    ]
}

/// More than any case but one writes.
const MANY: NonZeroU32 = NonZeroU32::MIN.saturating_add(9_999);

fn most(count: usize) -> Result<NonZeroU32, String> {
    let count = u32::try_from(count).ok().and_then(NonZeroU32::new);
    count.ok_or_else(|| "a page holds one object at least, and not 4 billion".to_owned())
}

impl Suite<'_> {
    async fn list(&self, prefix: &ObjectAddress) -> Result<Vec<Listed>, String> {
        let listed = self.subject.store().list(prefix, MANY).await;
        listed.map_err(|error| format!("listing {prefix}: {}", error_chain(&error)))
    }

    /// The listing's keys are these, in this order.
    async fn lists(&self, prefix: impl Into<Vec<u8>>, expected: &[Vec<u8>]) -> CaseResult {
        let prefix = self.address(prefix);
        let listed = self.list(&prefix).await?;
        for entry in &listed {
            let here = prefix.beside(entry.address.key.clone());
            ensure!(
                entry.address == here,
                "listing {prefix}: {:?} lies elsewhere",
                entry.address
            );
            let key = entry.address.key.raw();
            ensure!(
                key == entry.address.key.display(),
                "listing {prefix}: a key is told encoded, {key:?}"
            );
        }
        let keys: Vec<_> = listed
            .iter()
            .map(|entry| entry.address.key.exact_bytes())
            .collect();
        let told = |keys: &[&[u8]]| {
            let keys = keys.iter().map(|key| shown(key).to_string());
            keys.collect::<Vec<_>>()
        };
        ensure!(
            keys == expected,
            "listing {}: expected {:?}, got {:?}",
            shown(prefix.key.exact_bytes()),
            told(&expected.iter().map(Vec::as_slice).collect::<Vec<_>>()),
            told(&keys)
        );
        Ok(())
    }
}

fn bytes(keys: &[&str]) -> Vec<Vec<u8>> {
    keys.iter().map(|key| key.as_bytes().to_vec()).collect()
}

async fn exact_prefix(suite: &Suite<'_>) -> CaseResult {
    for key in [
        "exact/in/roads.shp",
        "exact/in/roads.shx",
        "exact/in/roads.2024.dbf",
        "exact/in/roads.",
        "exact/in/roads",
        "exact/in/roads-old.shp",
        "exact/in/road.shp",
        "exact/in/Roads.shp",
        "exact/in/roads.d/inner.shp",
        "exact/in/roads.d/deep/inner.shp",
        "exact/roads.shp",
        "exact/out/roads.shp",
        "roads.shp",
    ] {
        suite.put(key, b"").await;
    }
    let of_roads = bytes(&[
        "exact/in/roads.",
        "exact/in/roads.2024.dbf",
        "exact/in/roads.shp",
        "exact/in/roads.shx",
    ]);
    suite.lists("exact/in/roads.", &of_roads).await?;
    let in_folder = bytes(&[
        "exact/in/Roads.shp",
        "exact/in/road.shp",
        "exact/in/roads",
        "exact/in/roads-old.shp",
        "exact/in/roads.",
        "exact/in/roads.2024.dbf",
        "exact/in/roads.shp",
        "exact/in/roads.shx",
    ]);
    suite.lists("exact/in/", &in_folder).await?;
    suite.lists("exact/in", &[]).await?;
    suite.lists("roads.", &bytes(&["roads.shp"])).await
}

/// What an encoding, a file name or a tidy mind would change.
const ODD: [&[u8]; 37] = [
    b"a b",
    b"a+b",
    b"a%20b",
    b"a%2Bb",
    b"a%2bb",
    b"%2F",
    b"%",
    b"%zz",
    b" leading",
    b"trailing ",
    b"two  blanks",
    b"trailing.",
    b".hidden",
    b"...",
    b"?versions",
    b"#fragment",
    b"a;b=c",
    b"&amp;&lt;",
    b"<Key>",
    b"\"'`",
    b"back\\slash",
    b"*[a-z]{1}",
    b"~$|^",
    b"co:lon@at,comma",
    "caf\u{e9}".as_bytes(),
    "cafe\u{301}".as_bytes(),
    "Ｆｕｌｌ".as_bytes(),
    "東京".as_bytes(),
    "\u{1f5fa}\u{fe0f}".as_bytes(),
    "\u{202e}left".as_bytes(),
    "\u{fffe}\u{ffff}".as_bytes(),
    "\u{fffd}".as_bytes(),
    b"tab\there",
    b"line\nfeed",
    b"carriage\r\nreturn\r",
    b"\x01control\x1f\x7f",
    b"not UTF-8 \xff\xfe",
];

async fn odd_keys(suite: &Suite<'_>) -> CaseResult {
    let can_hold = |key: &Vec<u8>| suite.subject.can_hold(key);
    let mut keys: Vec<_> = ODD
        .iter()
        .map(|name| [&b"odd/"[..], name].concat())
        .collect();
    keys.retain(can_hold);
    ensure!(
        keys.len() >= 30,
        "the subject writes {} of {} odd keys",
        keys.len(),
        ODD.len()
    );
    // A `/` more is another folder, and never nothing.
    let mut elsewhere = [
        &b"odd//x.shp"[..],
        b"/odd.shp",
        b"//odd.shp",
        b"odd/./x.shp",
        b"odd/../x.shp",
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    elsewhere.retain(can_hold);
    for key in keys.iter().chain(&elsewhere) {
        suite.subject.put(&suite.address(key.clone()), b"").await;
    }
    keys.sort();
    suite.lists("odd/", &keys).await?;
    for key in keys.iter().chain(&elsewhere) {
        let alike: Vec<_> = keys
            .iter()
            .filter(|other| other.starts_with(key))
            .cloned()
            .collect();
        let expected = if alike.is_empty() {
            vec![key.clone()]
        } else {
            alike
        };
        suite.lists(key.clone(), &expected).await?;
    }
    Ok(())
}

async fn whole_key(suite: &Suite<'_>) -> CaseResult {
    suite.put("whole/a", b"").await;
    suite.put("whole/a.shp", b"").await;
    let expected = bytes(&["whole/a", "whole/a.shp"]);
    suite.lists("whole/a", &expected).await?;
    suite.lists("whole/a.shp", &expected[1..]).await
}

async fn strongly_consistent(suite: &Suite<'_>) -> CaseResult {
    let prefix = suite.address("now/a.");
    let told = async || -> Result<Vec<(Vec<u8>, u64)>, String> {
        let listed = suite.list(&prefix).await?;
        let told = listed.iter();
        Ok(told
            .map(|entry| (entry.address.key.exact_bytes().to_owned(), entry.size))
            .collect())
    };
    let (shp, dbf) = (b"now/a.shp".to_vec(), b"now/a.dbf".to_vec());
    suite.put("now/a.shp", b"12345").await;
    let first = told().await?;
    ensure!(first == [(shp.clone(), 5)], "a.shp was written: {first:?}");
    suite.put("now/a.dbf", b"1").await;
    suite.put("now/a.shp", b"1234567").await;
    let second = told().await?;
    ensure!(
        second == [(dbf.clone(), 1), (shp.clone(), 7)],
        "a.dbf was written, and a.shp anew: {second:?}"
    );
    suite.subject.delete(&suite.address(shp)).await;
    let third = told().await?;
    ensure!(third == [(dbf, 1)], "a.shp was removed: {third:?}");
    Ok(())
}

async fn tokens(suite: &Suite<'_>) -> CaseResult {
    let prefix = suite.address("tokens/a.");
    for content in [&b"first"[..], b"other", b"other"] {
        suite.put("tokens/a.shp", content).await;
        suite.put("tokens/a.dbf", content).await;
        for Listed { address, token, .. } in suite.list(&prefix).await? {
            let head = suite.present(&address).await?;
            ensure!(
                token.as_ref().is_none_or(|token| *token == head.token),
                "{address}: listed at {token:?}, and a HEAD tells {:?}",
                head.token
            );
        }
    }
    Ok(())
}

/// 2001-09-09, in milliseconds; as many seconds are the year 33658.
const LONG_AGO: UnixMillis = UnixMillis(1_000_000_000_000);
const FAR_AWAY: UnixMillis = UnixMillis(1_000_000_000_000_000);

async fn times(suite: &Suite<'_>) -> CaseResult {
    let prefix = suite.address("times/a.");
    let mut before = LONG_AGO;
    for content in [&b"first"[..], b"other"] {
        suite.put("times/a.shp", content).await;
        for Listed { modified, .. } in suite.list(&prefix).await? {
            let modified = modified.unwrap_or(before);
            ensure!(
                before <= modified && modified < FAR_AWAY,
                "written at {} ms, after {} ms",
                modified.0,
                before.0
            );
            before = modified;
        }
    }
    Ok(())
}

async fn pages(suite: &Suite<'_>) -> CaseResult {
    let count = suite.subject.page() + 2;
    // The name's length is the same for all, so that their order is the numbers'.
    let keys: Vec<_> = (0..count).map(|n| format!("pages/a.{n:06}")).collect();
    suite.put_all(&keys).await;
    let prefix = suite.address("pages/a.");
    let store = suite.subject.store();
    let listed = store.list(&prefix, most(count)?).await;
    let listed = listed.map_err(|error| error_chain(&error))?;
    let told = listed.iter().map(|entry| entry.address.key.display());
    ensure!(
        told.eq(keys.iter().map(String::as_str)),
        "{count} objects were written, the listing has {}",
        listed.len()
    );
    let cut = store.list(&prefix, most(count - 1)?).await;
    is_too_many(&prefix, count - 1, cut)
}

async fn too_many(suite: &Suite<'_>) -> CaseResult {
    for suffix in ["shp", "shx", "dbf"] {
        suite.put(&format!("many/a.{suffix}"), b"").await;
    }
    let (store, prefix) = (suite.subject.store(), suite.address("many/a."));
    for least in [3, 4] {
        let listed = store.list(&prefix, most(least)?).await;
        let listed = listed.map_err(|error| error_chain(&error))?;
        ensure!(
            listed.len() == 3,
            "of 3 objects {} are listed",
            listed.len()
        );
    }
    for less in [1, 2] {
        is_too_many(&prefix, less, store.list(&prefix, most(less)?).await)?;
    }
    Ok(())
}

fn is_too_many(
    asked: &ObjectAddress,
    most: usize,
    listed: Result<Vec<Listed>, ObjectError>,
) -> CaseResult {
    match listed {
        Err(ObjectError::TooMany { prefix, most: told }) => {
            ensure!(
                prefix == asked.to_string() && usize::try_from(told.get()) == Ok(most),
                "more than {most} of {asked}: told as more than {told} of {prefix}"
            );
            Ok(())
        }
        Err(error) => Err(format!("more than {most}: {}", error_chain(&error))),
        Ok(listed) => Err(format!("more than {most}: {} are listed", listed.len())),
    }
}

async fn nothing(suite: &Suite<'_>) -> CaseResult {
    suite.put("nothing/b.shp", b"").await;
    for prefix in [
        "nothing/a.",
        "nothing/b.shp.",
        "nothing/b.shp/",
        "nowhere/at/all/a.",
    ] {
        suite.lists(prefix, &[]).await?;
    }
    Ok(())
}

async fn missing_container(suite: &Suite<'_>) -> CaseResult {
    let prefix = suite.subject.missing_container();
    let listed = suite.subject.store().list(&prefix, MANY).await;
    ensure!(
        matches!(listed, Err(ObjectError::Unavailable { .. })),
        "there is no such container: {listed:?}"
    );
    Ok(())
}

async fn elsewhere(suite: &Suite<'_>) -> CaseResult {
    let store = suite.subject.store();
    for provider in Provider::ALL
        .into_iter()
        .filter(|other| !store.reads(*other))
    {
        let mut prefix = suite.address("elsewhere/a.");
        prefix.provider = provider;
        let listed = store.list(&prefix, MANY).await;
        ensure!(
            matches!(listed, Err(ObjectError::Unavailable { .. })),
            "a listing in {}: {listed:?}",
            provider.as_str()
        );
    }
    Ok(())
}
