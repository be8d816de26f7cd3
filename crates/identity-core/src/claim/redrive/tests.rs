//! A row's event gives the row's ID again or none at all; and when which row is sent.

use proptest::prelude::*;

use super::*;
use crate::{
    claim::testing::{object, record},
    event::{Delivery, EventDetails, Item, Reading, read},
    identity::TokenKind,
};

const GRACE: Duration = Duration::from_secs(900);

fn contract(scheme: Scheme) -> Contract {
    Contract::parse(&format!(
        "name = 'scenes'\nversion = '1.0.0'\nscheme = '{scheme}'\n"
    ))
    .unwrap()
}

fn job_key(event: &StorageEvent, contract: &Contract) -> Option<(ClaimKey, VersionToken)> {
    let token = event.token_for(contract.scheme()).ok()??;
    let version = ObjectVersion {
        address: event.address.clone(),
        token: token.clone(),
    };
    let id = contract.deriver().job_id(&version).ok()?;
    Some((ClaimKey::from(id), token))
}

fn item(envelope: &str) -> Item {
    let mut items = read(&Delivery::from_body(envelope.as_bytes()));
    assert_eq!(items.len(), 1, "{items:?}");
    items.remove(0)
}

fn event(item: &Item) -> &StorageEvent {
    match &item.reading {
        Reading::Event(event) => event,
        other => panic!("expected an event, got {other:?}"),
    }
}

/// Keys as S3 writes them: escaped, half escaped, with bytes that are not UTF-8.
fn form_key() -> impl Strategy<Value = ObjectKey> {
    prop_oneof![
        "[a/+% .\u{fffd}é]{1,12}",
        "(%[0-9A-Fa-f]{2}|[a+/]){1,12}",
        "\\PC{1,12}"
    ]
    .prop_map(|raw: String| ObjectKey::decoded(raw.clone(), form_decode(&raw)))
}

fn token(kind: TokenKind) -> impl Strategy<Value = VersionToken> {
    "[a-z0-9\"-]{1,12}".prop_filter_map("only quotes", move |value| {
        VersionToken::new(kind, value).ok()
    })
}

fn stored_event() -> impl Strategy<Value = StorageEvent> {
    let text = || prop_oneof!["\\PC{1,12}", "[a/+% \u{fffd}]{1,8}"];
    let verbatim = || text().prop_map(ObjectKey::verbatim);
    let s3 = (
        prop_oneof![form_key(), verbatim()],
        prop_oneof![token(TokenKind::VersionId), token(TokenKind::ETag)],
        prop::option::of("[a-z0-9\"]{1,8}"),
    );
    let s3 = s3.prop_map(|(key, token, etag)| (Provider::S3, None, key, token, etag));
    let gcs = (verbatim(), token(TokenKind::Generation))
        .prop_map(|(key, token)| (Provider::Gcs, None, key, token, None));
    let azure = (text(), text(), token(TokenKind::ETag), "\\PC{1,8}").prop_map(
        |(raw, name, token, account)| {
            let etag = Some(token.value().to_owned());
            (
                Provider::Azure,
                Some(account),
                ObjectKey::decoded(raw, name),
                token,
                etag,
            )
        },
    );
    let file = (verbatim(), token(TokenKind::Content))
        .prop_map(|(key, token)| (Provider::File, None, key, token, None));
    (prop_oneof![s3, gcs, azure, file], "\\PC{1,8}").prop_map(
        |((provider, account, key, token, etag), container)| StorageEvent {
            address: ObjectAddress {
                provider,
                account,
                container,
                key,
            },
            token: Some(token),
            etag,
            details: EventDetails::default(),
            unconfirmed: false,
            refused_by_reference: None,
        },
    )
}

proptest! {
    #[test]
    fn the_event_of_a_claim_derives_its_id_again_under_every_scheme(original in stored_event(), redrives in 0..9_u32) {
        for scheme in Scheme::ALL {
            let contract = contract(scheme);
            let Some((key, token)) = job_key(&original, &contract) else { continue };
            let claimed = Record { object: Some(RecordedObject::new(&original.address, Some(&token))), ..record() };
            let resend = Resend::of(&key, &claimed, &contract);
            prop_assert!(resend.is_ok(), "{scheme}: {:?}: {resend:?}", claimed.object);
            let item = item(&resend.unwrap().envelope(&key, redrives));
            prop_assert!(item.redriven.is_none());
            prop_assert_eq!(job_key(event(&item), &contract), Some((key, token)));
            prop_assert_eq!(&event(&item).address, &original.address);
        }
    }

    #[test]
    fn no_record_is_sent_as_another_objects_event(key in "\\PC{0,8}", raw in prop::option::of("[%F+a\u{fffd}]{0,8}")) {
        let recorded = RecordedObject { raw_key: raw, ..object(&key) };
        if let Some(event) = event_of(&recorded) {
            prop_assert_eq!(RecordedObject::new(&event.address, event.token.as_ref()), recorded);
        }
    }
}

#[test]
fn a_record_that_does_not_tell_its_key_is_not_sent() {
    let recorded = RecordedObject {
        raw_key: Some("b%FF".into()),
        ..object("a\u{fffd}")
    };
    assert_eq!(event_of(&recorded), None);
    let told = RecordedObject {
        raw_key: Some("a%FF".into()),
        ..recorded
    };
    let event = event_of(&told).unwrap();
    assert_eq!(event.address.key.exact_bytes(), b"a\xff");
}

/// A claim of the strict pipeline, and its key.
fn claimed() -> (ClaimKey, Record) {
    let event = event_of(&object("a.shp")).unwrap();
    (
        job_key(&event, &contract(Scheme::Strict)).unwrap().0,
        record(),
    )
}

fn obstacle(change: impl FnOnce(&mut Record)) -> Result<bool, Obstacle> {
    let (key, mut record) = claimed();
    change(&mut record);
    Resend::of(&key, &record, &contract(Scheme::Strict)).map(|resend| resend.closes)
}

#[test]
fn each_row_that_cannot_be_sent_says_why() {
    assert_eq!(obstacle(|_| ()), Ok(false));
    assert_eq!(
        obstacle(|row| row.pipeline = Default::default()),
        Err(Obstacle::Foreign)
    );
    for other in ["name", "version"] {
        let told = obstacle(|row| match other {
            "name" => row.pipeline.name = "other".into(),
            _ => row.pipeline.version = "2".into(),
        });
        assert!(
            matches!(told, Err(Obstacle::OtherPipeline { .. })),
            "{told:?}"
        );
    }
    assert_eq!(
        obstacle(|row| row.object = Some(object("b.shp"))),
        Err(Obstacle::OtherId)
    );
    let tokenless = |row: &mut Record| row.object.as_mut().unwrap().token = None;
    assert_eq!(obstacle(tokenless), Err(Obstacle::Foreign));
    assert_eq!(obstacle(|row| row.object = None), Err(Obstacle::Foreign));
    let body = |length| {
        move |row: &mut Record| {
            (row.object, row.body, row.attempt) = (None, Some(vec![b'{'; length]), 0);
        }
    };
    assert_eq!(obstacle(body(Record::MAX_BODY_BYTES)), Err(Obstacle::Cut));
    assert_eq!(obstacle(body(Record::MAX_BODY_BYTES - 1)), Ok(true));
}

#[test]
fn what_reference_may_have_refused_for_its_url_is_not_sent() {
    let recorded = RecordedObject {
        provider: Provider::Azure,
        account: Some("acct".into()),
        ..object("a.shp")
    };
    let told = |reason, scheme| {
        let row = Record {
            status: Status::Rejected,
            attempt: 0,
            reason: Some(reason),
            object: Some(recorded.clone()),
            ..record()
        };
        let key = ClaimKey::from_digest([7; 32]);
        Resend::of(&key, &row, &contract(scheme)).map(|resend| resend.closes)
    };
    assert_eq!(
        told(Reason::Refused, Scheme::Reference),
        Err(Obstacle::RefusedUrl)
    );
    assert_eq!(
        told(Reason::Released, Scheme::Reference),
        Err(Obstacle::RefusedUrl)
    );
    assert_eq!(told(Reason::NotAllowed, Scheme::Reference), Ok(true));
    assert_eq!(told(Reason::Refused, Scheme::Strict), Ok(true));
}

#[test]
fn at_cloud_storage_what_never_was_a_job_is_confirmed_by_the_store() {
    for (provider, unconfirmed) in [(Provider::Gcs, true), (Provider::S3, false)] {
        let row = Record {
            status: Status::Rejected,
            attempt: 0,
            object: Some(RecordedObject {
                provider,
                ..object("a.shp")
            }),
            ..record()
        };
        let key = ClaimKey::from_digest([7; 32]);
        let resend = Resend::of(&key, &row, &contract(Scheme::Strict)).unwrap();
        let item = item(&resend.envelope(&key, 4));
        assert_eq!(event(&item).unconfirmed, unconfirmed);
        let redriven = item.redriven.as_ref().unwrap();
        assert_eq!((&*redriven.record, redriven.redrives), (key.as_str(), 4));
    }
}

#[test]
fn what_was_not_whole_is_sent_as_such_also_once_it_was_released() {
    let mut object = object("a.shp");
    object.token = None;
    let waiting = Record {
        status: Status::Waiting,
        attempt: 0,
        object: Some(object),
        ..record()
    };
    let given_back = released(&waiting, Owner(2), UnixMillis(5));
    let sent_on = redriven(&waiting, Owner(2), GRACE, UnixMillis(5));
    assert_eq!(sent_on.status, Status::Waiting);
    for row in [waiting, given_back, sent_on] {
        let key = ClaimKey::from_digest([7; 32]);
        let resend = Resend::of(&key, &row, &contract(Scheme::Strict)).unwrap();
        assert!(matches!(
            item(&resend.envelope(&key, 1)).reading,
            Reading::Incomplete(_)
        ));
    }
}

/// Seconds after the claim of [`record`] at second 1,000.
fn at(seconds: i64) -> UnixMillis {
    UnixMillis((1_000 + seconds) * 1_000)
}

#[track_caller]
fn assert_ripens(row: &Record, seconds: i64) {
    let told = |now| ripeness(row, GRACE, &Terms::default(), now);
    assert_eq!(told(UnixMillis(at(seconds).0 - 1)), Ok(Ripeness::Unripe));
    assert_eq!(told(at(seconds)), Ok(Ripeness::Ripe));
}

#[test]
fn a_row_ripens_a_grace_after_it_came_to_stand_so() {
    assert_ripens(&record(), 120 + 900);
    let foreign = Record {
        lease_until: None,
        owner: None,
        ..record()
    };
    assert_ripens(&foreign, 3_600 + 900);
    let failed = Record {
        status: Status::Failed,
        finished_at: Some(at(50).seconds()),
        ..record()
    };
    assert_ripens(&failed, 50 + 900);
    assert_ripens(&swept(&failed, Owner(2), GRACE, at(2_000)), 2_000 + 900);
    assert_ripens(
        &Record {
            finished_at: None,
            ..failed.clone()
        },
        900,
    );
    let waiting = Record {
        status: Status::Waiting,
        waiting_until: Some(at(1_500)),
        ..record()
    };
    assert_ripens(&waiting, 1_500);
    assert_ripens(
        &Record {
            waiting_until: Some(at(1)),
            ..waiting
        },
        900,
    );
    for status in [Status::Done, Status::Rejected] {
        let ended = Record { status, ..record() };
        let told = ripeness(&ended, GRACE, &Terms::default(), at(1_000_000));
        assert_eq!(told, Ok(Ripeness::Ended));
    }
}

#[test]
fn no_wrong_clock_keeps_a_row_from_being_sent_for_ever() {
    let far = at(365 * 86_400);
    let told = |row: &Record| ripeness(row, GRACE, &Terms::default(), at(0));
    let failed = Record {
        status: Status::Failed,
        finished_at: Some(far.seconds()),
        ..record()
    };
    assert_eq!(told(&failed), Ok(Ripeness::Ripe));
    let marked = Record {
        waiting_until: Some(far),
        finished_at: Some(at(-2_000).seconds()),
        ..failed
    };
    assert_eq!(told(&marked), Ok(Ripeness::Ripe));
    let held = Record {
        lease_until: Some(far),
        ..record()
    };
    assert_eq!(told(&held), Err(Obstacle::Clock));
    // The longest lease, and a wait until the end of the grace after it, are nobody's wrong clock.
    let longest = at(0).plus(Terms::default().longest_lease());
    let farthest = longest.plus(GRACE);
    let leased = |until| Record {
        lease_until: Some(until),
        ..record()
    };
    let waits = |until| Record {
        status: Status::Failed,
        finished_at: Some(at(-2_000).seconds()),
        waiting_until: Some(until),
        ..record()
    };
    let next = |moment: UnixMillis| UnixMillis(moment.0 + 1);
    assert_eq!(told(&leased(longest)), Ok(Ripeness::Unripe));
    assert_eq!(told(&leased(next(longest))), Err(Obstacle::Clock));
    assert_eq!(told(&waits(farthest)), Ok(Ripeness::Unripe));
    assert_eq!(told(&waits(next(farthest))), Ok(Ripeness::Ripe));
    // What lies ahead by no more than two clocks may differ is waited for.
    let skewed = Record {
        status: Status::Failed,
        finished_at: Some(at(60).seconds()),
        ..record()
    };
    assert_eq!(told(&skewed), Ok(Ripeness::Unripe));
}

#[test]
fn a_mark_leaves_the_holder_its_claim() {
    let marked = swept(&record(), Owner(2), GRACE, at(2_000));
    let expected = Record {
        revision: Some(Revision {
            owner: Owner(2),
            write: 1,
        }),
        redrives: 1,
        waiting_until: Some(at(2_900)),
        ..record()
    };
    assert_eq!(marked, expected);
}

#[test]
fn only_an_operator_who_says_so_takes_what_is_done_and_nobody_what_is_held() {
    let held = record();
    assert_eq!(may_redrive(&held, true, at(119)), Err(Obstacle::Held));
    assert_eq!(may_redrive(&held, false, at(120)), Ok(()));
    let done = Record {
        status: Status::Done,
        ..record()
    };
    assert_eq!(may_redrive(&done, false, at(0)), Err(Obstacle::Done));
    assert_eq!(may_redrive(&done, true, at(0)), Ok(()));
    let again = redriven(&done, Owner(2), GRACE, at(5));
    assert_eq!(
        (again.status, again.redrives, again.attempt),
        (Status::Failed, 1, 1)
    );
    assert_eq!(again.released.unwrap().from, Status::Done);
}

#[test]
fn only_the_open_record_that_the_event_came_from_is_closed() {
    let open = Record {
        status: Status::Failed,
        attempt: 0,
        redrives: 2,
        waiting_until: Some(at(5)),
        error: Some("refused".into()),
        ..record()
    };
    let event = event_of(open.object.as_ref().unwrap()).unwrap();
    let carried = Carried::Event {
        address: Box::new(event.address),
        token: event.token,
    };
    let close = |row: &Record, redrives| {
        let sent = (redrives, &carried);
        closed(row, sent, Owner(3), &Terms::default(), at(9))
    };
    let done = close(&open, 2).unwrap();
    let expected = Record {
        status: Status::Done,
        owner: Some(Owner(3)),
        revision: Some(Revision {
            owner: Owner(3),
            write: 1,
        }),
        waiting_until: None,
        finished_at: Some(at(9).seconds()),
        expires_at: Some(at(9).plus(Terms::default().done_ttl).seconds()),
        reason: Some(Reason::Redriven),
        error: done.error.clone(),
        ..open.clone()
    };
    assert_eq!(done, expected);
    assert!(!done.is_end() && done.error.unwrap().contains("was sent again"));
    assert_eq!(close(&open, 1), None, "it was sent again since");
    let job = Record {
        attempt: 1,
        ..open.clone()
    };
    assert_eq!(close(&job, 2), None, "a job has an end of its own");
    for status in [Status::Rejected, Status::Done, Status::Processing] {
        assert_eq!(
            close(
                &Record {
                    status,
                    ..open.clone()
                },
                2
            ),
            None,
            "{status}"
        );
    }
}
