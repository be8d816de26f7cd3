//! Job IDs: from objects, and from the bytes of events.

use std::{fs, hint::black_box, path::Path, time::Duration};

use identity_core::{
    event::{Delivery, Reading, read},
    identity::{
        Deriver, ObjectAddress, ObjectKey, ObjectVersion, Params, Provider, Scheme, TokenKind,
        VersionToken,
    },
};
use sha2::{Digest as _, Sha256};

use crate::timing::{each, in_turns, python, row, time};

const PARAMS: &str = r#"{"dst_crs":"EPSG:3857","resampling":"bilinear","tile_px":512}"#;
/// How many IDs a turn derives; the peer derives a tenth, for it takes its time.
const COUNT: u32 = 200_000;
const PEER_COUNT: u32 = COUNT / 10;

fn deriver(scheme: Scheme) -> Deriver {
    Deriver::new(
        "scenes",
        "3.2.0",
        scheme,
        &Params::from_json(PARAMS).unwrap(),
    )
    .unwrap()
}

fn object() -> ObjectVersion {
    let raw = "L2A/T31UDQ%2FB08.tif";
    let key = ObjectKey::decoded(raw, identity_core::identity::decode::form_decode(raw));
    let address = ObjectAddress {
        provider: Provider::S3,
        account: None,
        container: "sentinel-scenes".into(),
        key,
    };
    ObjectVersion {
        address,
        token: VersionToken::new(TokenKind::ETag, "9b2cf5a1c0d3e4f5").unwrap(),
    }
}

fn repeat<T>(mut work: impl FnMut() -> T) {
    for _ in 0..COUNT {
        black_box(work());
    }
}

/// The time for one of the peer's rounds, as if it had done as many as we did.
fn scaled(took: Duration) -> Duration {
    took * (COUNT / PEER_COUNT)
}

pub(crate) fn job_ids() {
    for scheme in Scheme::ALL {
        let (deriver, object) = (deriver(scheme), object());
        let material = deriver.material(&object).unwrap().bytes().to_vec();
        let [ours, bare, peer] = in_turns([
            &mut || time(|| repeat(|| deriver.job_id(black_box(&object)))),
            &mut || time(|| repeat(|| Sha256::digest(black_box(&material)))),
            &mut || scaled(python(&["id", &PEER_COUNT.to_string()])),
        ]);
        let per_second = f64::from(COUNT) / ours.as_secs_f64() / 1e6;
        let what = format!("job ID, `{scheme}` ({} bytes of material)", material.len());
        let figure = format!("{} ({per_second:.1} million/s)", each(ours, COUNT));
        let ratio = |other: Duration| other.as_secs_f64() / ours.as_secs_f64();
        row(
            &what,
            &figure,
            &format!("one bare SHA-256 over the material: {}", each(bare, COUNT)),
            1.0 / ratio(bare),
        );
        row(
            &what,
            &figure,
            &format!("Python: {}", each(peer, COUNT)),
            ratio(peer),
        );
    }
}

pub(crate) fn bytes_to_ids() {
    let events = Path::new(env!("CARGO_MANIFEST_DIR")).join("events");
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "s3_direct_put",
        "sqs_s3",
        "sqs_sns_s3",
        "eventbridge_object_created",
    ] {
        // The fixtures are laid out for people; sources send JSON without blanks.
        let fixture: serde_json::Value =
            serde_json::from_slice(&fs::read(events.join(name).with_extension("json")).unwrap())
                .unwrap();
        let body = compact(&fixture).to_string();
        let file = folder.path().join(name);
        fs::write(&file, &body).unwrap();
        for scheme in [Scheme::Strict, Scheme::Reference] {
            let deriver = deriver(scheme);
            let derive = || {
                for item in read(&Delivery::from_body(black_box(body.as_bytes()))) {
                    let Reading::Event(event) = item.reading else {
                        unreachable!("{name} is no event")
                    };
                    let token = event.token_for(scheme).unwrap().unwrap();
                    let object = ObjectVersion {
                        address: event.address,
                        token,
                    };
                    let _ = black_box(deriver.job_id(&object));
                }
            };
            let [ours, peer] = in_turns([
                &mut || time(|| (0..COUNT / 4).for_each(|_| derive())) * 4,
                &mut || {
                    scaled(python(&[
                        "bytes",
                        &PEER_COUNT.to_string(),
                        file.to_str().unwrap(),
                    ]))
                },
            ]);
            let what = format!("`{name}` ({} bytes) → `{scheme}` ID", body.len());
            let beside = format!("Python: {}", each(peer, COUNT));
            row(
                &what,
                &each(ours, COUNT),
                &beside,
                peer.as_secs_f64() / ours.as_secs_f64(),
            );
        }
    }
}

/// The same with every text that holds JSON laid out without blanks, too.
fn compact(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ Value::Object(_)) => Value::String(compact(&inner).to_string()),
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(compact).collect(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, value)| (name.clone(), compact(value)))
                .collect(),
        ),
        _ => value.clone(),
    }
}
