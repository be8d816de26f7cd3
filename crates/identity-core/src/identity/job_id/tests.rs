//! Tests of the job ID: sensitivity of `strict`, and each over-determinism of `reference` that it ends.

use proptest::prelude::*;

use super::*;
use crate::identity::{
    ObjectAddress, ObjectKey, VersionToken, decode::form_decode, event_grid_url::container_and_name,
};

fn params(json: &str) -> Params {
    Params::from_json(json).unwrap()
}

fn deriver(scheme: Scheme, json: &str) -> Deriver {
    Deriver::new("scenes", "3.2.0", scheme, &params(json)).unwrap()
}

fn object(
    provider: Provider,
    account: Option<&str>,
    container: &str,
    key: ObjectKey,
) -> ObjectVersion {
    ObjectVersion {
        address: ObjectAddress {
            provider,
            account: account.map(str::to_owned),
            container: container.to_owned(),
            key,
        },
        token: VersionToken::new(TokenKind::ETag, "aa").unwrap(),
    }
}

fn s3(raw: &str) -> ObjectVersion {
    object(
        Provider::S3,
        None,
        "b",
        ObjectKey::decoded(raw, form_decode(raw)),
    )
}

fn gcs(name: &str) -> ObjectVersion {
    object(Provider::Gcs, None, "b", ObjectKey::verbatim(name))
}

/// An Event Grid event about the blob `name` whose `data.url` does not escape it.
fn event_grid(account: &str, name: &str) -> ObjectVersion {
    let url = format!("https://{account}.blob.core.windows.net/c/{name}");
    let (container, raw) = container_and_name(&url).unwrap();
    object(
        Provider::Azure,
        Some(account),
        &container,
        ObjectKey::decoded(raw, name),
    )
}

/// One ID under `reference`, two under `strict`.
#[track_caller]
fn collapsed_by_reference_only(a: &ObjectVersion, b: &ObjectVersion) {
    let id = |scheme, object| deriver(scheme, "{}").job_id(object).unwrap();
    assert_eq!(id(Scheme::Reference, a), id(Scheme::Reference, b));
    assert_ne!(id(Scheme::Strict, a), id(Scheme::Strict, b));
}

#[test]
fn doubled_slashes_are_another_object() {
    collapsed_by_reference_only(&s3("a//b"), &s3("a/b"));
    collapsed_by_reference_only(&s3("/a/b/"), &s3("a/b"));
}

#[test]
fn a_plus_in_a_cloud_storage_name_is_no_space() {
    collapsed_by_reference_only(&gcs("a+b"), &gcs("a b"));
    collapsed_by_reference_only(&gcs("a%20b"), &gcs("a b"));
}

#[test]
fn a_plus_in_an_event_grid_path_is_no_space() {
    collapsed_by_reference_only(&event_grid("acct", "a+b"), &event_grid("acct", "a b"));
}

#[test]
fn a_semicolon_question_mark_or_hash_is_part_of_a_blobs_name() {
    for name in ["a;b", "a?b", "a#b"] {
        collapsed_by_reference_only(&event_grid("acct", name), &event_grid("acct", "a"));
    }
}

#[test]
fn a_container_of_another_account_is_another_container() {
    collapsed_by_reference_only(&event_grid("acct1", "k"), &event_grid("acct2", "k"));
}

#[test]
fn two_buckets_that_differ_in_case_are_two_buckets() {
    let bucket = |name| object(Provider::Gcs, None, name, ObjectKey::verbatim("k"));
    collapsed_by_reference_only(&bucket("B"), &bucket("b"));
}

#[test]
fn invalid_utf8_is_one_replacement_under_reference_and_refused_under_strict() {
    let (a, b) = (s3("bad%FE.tif"), s3("bad%FF.tif"));
    let reference = deriver(Scheme::Reference, "{}");
    assert_eq!(reference.job_id(&a), reference.job_id(&b));
    for object in [a, b] {
        assert_eq!(
            deriver(Scheme::Strict, "{}").job_id(&object),
            Err(Refusal::KeyNotUtf8("bad\u{fffd}.tif".into()))
        );
    }
}

#[test]
fn parameters_that_reference_cuts_or_retypes_are_other_jobs() {
    for (a, b) in [
        (r#"{"t":1e-7}"#, r#"{"t":3e-7}"#),
        (r#"{"t":0.1}"#, r#"{"t":"0.100000"}"#),
        (r#"{"t":10.0}"#, r#"{"t":"10.000000"}"#),
    ] {
        let id = |scheme, json| deriver(scheme, json).job_id(&s3("k")).unwrap();
        assert_eq!(
            id(Scheme::Reference, a),
            id(Scheme::Reference, b),
            "{a} {b}"
        );
        assert_ne!(id(Scheme::Strict, a), id(Scheme::Strict, b), "{a} {b}");
    }
}

#[test]
fn the_name_of_a_pipeline_has_a_part_under_strict_only() {
    let id = |scheme, name| {
        let deriver = Deriver::new(name, "1", scheme, &params("{}")).unwrap();
        deriver.job_id(&s3("k")).unwrap()
    };
    assert_eq!(id(Scheme::Reference, "a"), id(Scheme::Reference, "b"));
    assert_ne!(id(Scheme::Strict, "a"), id(Scheme::Strict, "b"));
}

#[test]
fn a_parameter_that_would_be_overwritten_and_a_token_of_two_quotes_are_refused() {
    assert!(matches!(
        Params::from_json(r#"{"_pipeline_version":"9"}"#),
        Err(crate::identity::ParamsError::Refused(
            Refusal::ReservedParameter
        ))
    ));
    assert_eq!(
        VersionToken::new(TokenKind::ETag, "\"\""),
        Err(Refusal::QuotesOnlyToken("\"\"".into()))
    );
}

#[test]
fn one_write_has_one_id_through_every_envelope_of_the_s3_family() {
    let exact = "land use/a+b \u{e9}.tif";
    let envelopes = [
        s3("land+use/a%2Bb+%C3%A9.tif"),
        s3("land%20use%2Fa%2bb%20%c3%a9.tif"),
        object(Provider::S3, None, "b", ObjectKey::verbatim(exact)),
    ];
    for scheme in Scheme::ALL {
        let ids = envelopes
            .each_ref()
            .map(|object| deriver(scheme, "{}").job_id(object).unwrap());
        assert!(ids.iter().all(|id| *id == ids[0]), "{scheme}: {ids:?}");
    }
}

#[test]
fn the_plain_example_of_the_published_program_has_its_id() {
    let raw = "L2A/T31UDQ%2FB08.tif";
    let mut object = object(
        Provider::S3,
        None,
        "sentinel-scenes",
        ObjectKey::decoded(raw, form_decode(raw)),
    );
    object.token = VersionToken::for_s3(None, Some("\"9b2cf5a1c0d3e4f5\""))
        .unwrap()
        .unwrap();
    let deriver = deriver(
        Scheme::Reference,
        r#"{"dst_crs":"EPSG:3857","resampling":"bilinear","tile_px":512}"#,
    );
    assert_eq!(
        deriver.job_id(&object).unwrap().to_hex(),
        "83f3ef276561ec2aed51729c1a0fa6b9636fbe5177214ebcc4a1b5d62a7cb864"
    );
}

#[test]
fn ingest_refuses_what_its_handler_never_sees() {
    let ingest = deriver(Scheme::Ingest, "{}");
    assert_eq!(
        ingest.job_id(&gcs("k")),
        Err(Refusal::ProviderOutsideIngest(Provider::Gcs))
    );
    let mut versioned = s3("k");
    versioned.token = VersionToken::new(TokenKind::VersionId, "v1").unwrap();
    assert_eq!(
        ingest.job_id(&versioned),
        Err(Refusal::TokenOutsideIngest(TokenKind::VersionId))
    );
    assert_eq!(
        ingest.job_id(&s3("bad%FF")),
        ingest.job_id(&s3("bad\u{fffd}"))
    );
}

#[test]
fn a_strict_id_is_framed_as_the_module_says() {
    let deriver = deriver(Scheme::Strict, r#"{"n":1}"#);
    let material = deriver.material(&s3("k")).unwrap();
    let mut expected = b"firstclaim/job/strict/1\n".to_vec();
    for field in ["scenes", "3.2.0", r#"{"n":1}"#, "s3://b/k", "etag:aa"] {
        expected.extend([0, 0, 0, 0, 0, 0, 0, u8::try_from(field.len()).unwrap()]);
        expected.extend(field.as_bytes());
    }
    assert_eq!(material.bytes(), expected);
    assert_eq!(material.fields()[3], ("uri", "s3://b/k".to_owned()));
}

#[test]
fn a_token_of_each_kind_is_another_token_under_strict_only() {
    let kinds = [
        TokenKind::VersionId,
        TokenKind::ETag,
        TokenKind::Generation,
        TokenKind::Content,
    ];
    let ids = |scheme| {
        kinds.map(|kind| {
            let token = VersionToken::new(kind, "1").unwrap();
            let object = ObjectVersion { token, ..s3("k") };
            deriver(scheme, "{}").job_id(&object).unwrap()
        })
    };
    let distinct = |ids: [JobId; 4]| std::collections::BTreeSet::from(ids).len();
    assert_eq!(distinct(ids(Scheme::Strict)), 4);
    assert_eq!(distinct(ids(Scheme::Reference)), 1);
}

#[test]
fn a_job_id_is_its_text_and_nothing_else_parses() {
    let id = deriver(Scheme::Strict, "{}").job_id(&s3("k")).unwrap();
    assert_eq!(JobId::parse(&id.to_string()), Some(id));
    assert_eq!(JobId::parse(&id.to_hex().to_uppercase()), None);
    assert_eq!(JobId::parse(&id.to_hex()[1..]), None);
    assert_eq!(format!("{id:.12}"), id.to_hex()[..12]);
}

/// All that a `strict` ID depends on, on normalised inputs: an account at Azure and nowhere else, in lower case there.
#[derive(Debug, Clone, PartialEq)]
struct Job {
    name: String,
    version: String,
    params: Vec<(String, i32)>,
    object: ObjectVersion,
}

impl Job {
    fn id(&self, scheme: Scheme) -> JobId {
        let params = self.params.iter().cloned();
        let params = params.map(|(key, value)| {
            (
                key,
                crate::identity::ParamValue::Integer(i64::from(value).into()),
            )
        });
        let params = Params::new(params.collect()).unwrap();
        let deriver = Deriver::new(&self.name, &self.version, scheme, &params).unwrap();
        let id = deriver.job_id(&self.object).unwrap();
        let material = deriver.material(&self.object).unwrap();
        assert_eq!(hex::sha256_hex(material.bytes()), id.to_hex());
        id
    }
}

fn token() -> impl Strategy<Value = VersionToken> {
    let kinds = [
        TokenKind::VersionId,
        TokenKind::ETag,
        TokenKind::Generation,
        TokenKind::Content,
    ];
    (prop::sample::select(kinds.to_vec()), "[a-z0-9:]{1,4}")
        .prop_map(|(kind, value)| VersionToken::new(kind, value).unwrap())
}

fn address() -> impl Strategy<Value = ObjectAddress> {
    let providers = [Provider::S3, Provider::Gcs, Provider::Azure, Provider::File];
    (
        prop::sample::select(providers.to_vec()),
        "[a-z0-9]{1,3}",
        "[a-z0-9]{1,3}",
        "[a-z/+% \u{e9}]{1,6}",
    )
        .prop_map(|(provider, account, container, key)| ObjectAddress {
            provider,
            account: (provider == Provider::Azure).then_some(account),
            container,
            key: ObjectKey::verbatim(key),
        })
}

fn job() -> impl Strategy<Value = Job> {
    let params = prop::collection::btree_map("[a-z]{1,3}", any::<i32>(), 0..4);
    ("[ -~]{0,4}", "[0-9.]{0,4}", params, address(), token()).prop_map(
        |(name, version, params, address, token)| Job {
            name,
            version,
            params: params.into_iter().collect(),
            object: ObjectVersion { address, token },
        },
    )
}

proptest! {
    #[test]
    fn changing_any_one_field_changes_a_strict_id(a in job(), b in job()) {
        let changed = [
            Job { name: b.name.clone(), ..a.clone() },
            Job { version: b.version.clone(), ..a.clone() },
            Job { params: b.params.clone(), ..a.clone() },
            Job { object: ObjectVersion { address: b.object.address.clone(), ..a.object.clone() }, ..a.clone() },
            Job { object: ObjectVersion { token: b.object.token.clone(), ..a.object.clone() }, ..a.clone() },
            b,
        ];
        for other in changed {
            prop_assert_eq!(a == other, a.id(Scheme::Strict) == other.id(Scheme::Strict), "{:?}", other);
        }
    }

    #[test]
    fn text_that_moves_from_one_field_to_the_next_changes_a_strict_id(
        text in "[a-z]{2,8}",
        at in 0..8_usize,
        object in job(),
    ) {
        let (left, right) = text.split_at(at % text.len());
        let moved = Job { name: left.into(), version: right.into(), ..object.clone() };
        let whole = Job { name: text, version: String::new(), ..object };
        prop_assert_ne!(moved.id(Scheme::Strict), whole.id(Scheme::Strict));
    }

    #[test]
    fn the_order_of_parameters_has_no_part(a in job(), seed in any::<prop::sample::Index>()) {
        let mut members: Vec<String> =
            a.params.iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
        let id = |members: &[String]| {
            deriver(Scheme::Strict, &format!("{{{}}}", members.join(","))).job_id(&a.object)
        };
        let before = id(&members);
        members.reverse();
        let turn = if members.is_empty() { 0 } else { seed.index(members.len()) };
        members.rotate_left(turn);
        prop_assert_eq!(id(&members), before);
    }

    #[test]
    fn what_is_explained_is_what_is_hashed(a in job()) {
        // `Job::id` compares the two for each scheme that takes the job.
        a.id(Scheme::Strict);
        a.id(Scheme::Reference);
    }
}
