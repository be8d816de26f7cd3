//! Whether a record under an ID is the same job as the event at hand: a duplicate is looked at, not only counted.

use super::record::{Record, RecordedObject, RecordedPipeline};
use crate::identity::decode::form_decode;

/// How a record compares with an event of the same ID.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Likeness {
    /// The same job. `contract_changed` if it was recorded under another contract file of the same version, e.g. one
    /// with another `[job]`: worth a warning, not a second run.
    Same {
        /// Whether the whole contract's digest differs.
        contract_changed: bool,
    },
    /// Two spellings that the scheme means to fold (`reference`: doubled slashes, bucket case): worth a warning that
    /// names both.
    Folded,
    /// Two jobs collapsed into one ID. The fields that differ are named.
    Different(Vec<&'static str>),
}

/// Compares what a record says of its job with the event's. A field that the record lacks (another program wrote it)
/// cannot differ.
pub fn compare(record: &Record, object: &RecordedObject, pipeline: &RecordedPipeline) -> Likeness {
    let mut differing = pipeline_differences(&record.pipeline, pipeline);
    let mut folded = false;
    if let Some(recorded) = &record.object {
        match (
            same_place(recorded, object),
            pipeline.scheme == "reference" && folds_together(recorded, object),
        ) {
            (true, _) => {}
            (false, true) => folded = true,
            (false, false) => differing.push("object"),
        }
        if recorded.token.is_some() && object.token.is_some() && recorded.token != object.token {
            differing.push("token");
        }
    }
    if !differing.is_empty() {
        return Likeness::Different(differing);
    }
    if folded {
        return Likeness::Folded;
    }
    let recorded = &record.pipeline;
    let changed = !recorded.contract_digest.is_empty()
        && recorded.contract_digest != pipeline.contract_digest;
    Likeness::Same {
        contract_changed: changed && recorded.version == pipeline.version,
    }
}

fn pipeline_differences(
    recorded: &RecordedPipeline,
    event: &RecordedPipeline,
) -> Vec<&'static str> {
    let mut differing = Vec::new();
    if !recorded.name.is_empty() && recorded.name != event.name {
        differing.push("pipeline name");
    }
    if !recorded.params_digest.is_empty() && recorded.params_digest != event.params_digest {
        differing.push("parameters");
    }
    differing
}

fn same_place(a: &RecordedObject, b: &RecordedObject) -> bool {
    a.provider == b.provider
        && a.account == b.account
        && a.container == b.container
        && exact_bytes(a) == exact_bytes(b)
}

/// The key's bytes. A key with bytes that are not UTF-8 is recorded with U+FFFD in their place, which would make two
/// such keys look alike; what it was is still in the raw key.
fn exact_bytes(object: &RecordedObject) -> Vec<u8> {
    match &object.raw_key {
        Some(raw) if object.key.contains(char::REPLACEMENT_CHARACTER) => form_decode(raw),
        _ => object.key.clone().into_bytes(),
    }
}

/// Whether the `reference` scheme means these two to be one object: buckets are trimmed and lower-cased, and empty path
/// segments fall out. (Its other collapses, e.g. `+` for a blank in Cloud Storage names, are mistakes.)
fn folds_together(a: &RecordedObject, b: &RecordedObject) -> bool {
    let container = |object: &RecordedObject| object.container.trim().to_lowercase();
    let segments = |object: &RecordedObject| {
        exact_bytes(object)
            .split(|byte| *byte == b'/')
            .filter(|part| !part.is_empty())
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>()
    };
    a.provider == b.provider
        && a.account == b.account
        && container(a) == container(b)
        && segments(a) == segments(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::testing::{object, pipeline, record};
    use crate::identity::{Provider, TokenKind};

    fn compare_objects(recorded: RecordedObject, event: &RecordedObject, scheme: &str) -> Likeness {
        let event_pipeline = RecordedPipeline {
            scheme: scheme.into(),
            ..pipeline()
        };
        compare(
            &Record {
                object: Some(recorded),
                ..record()
            },
            event,
            &event_pipeline,
        )
    }

    #[test]
    fn the_same_job_is_the_same_and_a_new_contract_file_is_told() {
        assert_eq!(
            compare(&record(), &object("a.shp"), &pipeline()),
            Likeness::Same {
                contract_changed: false
            }
        );
        let other = RecordedPipeline {
            contract_digest: "other".into(),
            ..pipeline()
        };
        let next = RecordedPipeline {
            version: "2".into(),
            ..other.clone()
        };
        assert_eq!(
            compare(&record(), &object("a.shp"), &next),
            Likeness::Same {
                contract_changed: false
            }
        );
        assert_eq!(
            compare(&record(), &object("a.shp"), &other),
            Likeness::Same {
                contract_changed: true
            }
        );
    }

    #[test]
    fn what_reference_means_to_fold_is_folded_and_nothing_else() {
        let bucket_case = RecordedObject {
            container: "GEO".into(),
            ..object("a//b.shp")
        };
        assert_eq!(
            compare_objects(bucket_case.clone(), &object("a/b.shp"), "reference"),
            Likeness::Folded
        );
        assert_eq!(
            compare_objects(bucket_case, &object("a/b.shp"), "strict"),
            Likeness::Different(vec!["object"])
        );
        // One of the parts that make a place is another one.
        for other in [
            RecordedObject {
                provider: Provider::Gcs,
                ..object("a//b.shp")
            },
            RecordedObject {
                account: Some("acme".into()),
                ..object("a//b.shp")
            },
            RecordedObject {
                container: "other".into(),
                ..object("a//b.shp")
            },
            object("a//c.shp"),
        ] {
            assert_eq!(
                compare_objects(other.clone(), &object("a/b.shp"), "reference"),
                Likeness::Different(vec!["object"]),
                "{other:?}"
            );
        }
        assert_eq!(
            compare_objects(object("a+b.shp"), &object("a b.shp"), "reference"),
            Likeness::Different(vec!["object"])
        );
    }

    #[test]
    fn what_another_program_did_not_write_does_not_differ() {
        let same = Likeness::Same {
            contract_changed: false,
        };
        let without = || RecordedObject {
            token: None,
            ..object("a.shp")
        };
        for (recorded, event) in [
            (without(), object("a.shp")),
            (object("a.shp"), without()),
            (without(), without()),
        ] {
            assert_eq!(compare_objects(recorded, &event, "strict"), same);
        }
    }

    #[test]
    fn two_keys_that_are_not_utf8_are_two_objects_though_they_are_shown_alike() {
        let unreadable = |raw: &str| RecordedObject {
            raw_key: Some(raw.into()),
            ..object("bad\u{fffd}.shp")
        };
        assert_eq!(
            compare_objects(
                unreadable("bad%FF.shp"),
                &unreadable("bad%FE.shp"),
                "reference"
            ),
            Likeness::Different(vec!["object"])
        );
        let literal = RecordedObject {
            raw_key: None,
            ..object("bad\u{fffd}.shp")
        };
        assert_eq!(
            compare_objects(literal, &unreadable("bad%EF%BF%BD.shp"), "reference"),
            Likeness::Same {
                contract_changed: false
            }
        );
    }

    #[test]
    fn how_a_readable_key_was_escaped_tells_nothing_of_the_object() {
        let escaped = RecordedObject {
            provider: Provider::Azure,
            raw_key: Some("a%20b+c.shp".into()),
            ..object("a b+c.shp")
        };
        let plain = RecordedObject {
            raw_key: None,
            ..escaped.clone()
        };
        let same = Likeness::Same {
            contract_changed: false,
        };
        assert_eq!(compare_objects(escaped, &plain, "strict"), same);
    }

    #[test]
    fn every_other_difference_is_named() {
        let event = RecordedObject {
            token: Some((TokenKind::ETag, "other".into())),
            provider: Provider::Gcs,
            ..object("a.shp")
        };
        let other = RecordedPipeline {
            name: "n2".into(),
            params_digest: "p2".into(),
            ..pipeline()
        };
        assert_eq!(
            compare(&record(), &event, &other),
            Likeness::Different(vec!["pipeline name", "parameters", "object", "token"])
        );
    }

    #[test]
    fn a_row_that_says_nothing_cannot_differ() {
        let bare = Record {
            object: None,
            pipeline: RecordedPipeline::default(),
            ..record()
        };
        assert_eq!(
            compare(&bare, &object("a.shp"), &pipeline()),
            Likeness::Same {
                contract_changed: false
            }
        );
    }
}
