//! What every cloud's handler does, with the real handler beside emulated services: each scenario is a test for each cloud.
//!
//! What only one cloud has (batches, FIFO queues, envelopes, deployments) is in its own folder.

use std::time::Duration;

use tests::{
    clouds::{Cloud, Message, Pending, Swept},
    eventually,
    handler::Handler,
    is_alive,
};

/// Makes a test of each scenario for each cloud.
macro_rules! for_each_cloud {
    ($($scenario:ident,)*) => {
        #[cfg(feature = "aws")]
        mod aws {
            $(#[test]
            fn $scenario() {
                super::$scenario::<tests::clouds::aws::Aws>();
            })*
        }
    };
}

for_each_cloud! {
    a_written_object_is_done_once_however_often_it_is_delivered,
    the_queue_is_emptied_whatever_the_keys_are,
    an_overwritten_object_is_a_job_of_its_own,
    of_several_messages_only_what_failed_comes_again,
    what_cannot_be_read_is_recorded_and_not_delivered_again,
    a_job_whose_handler_was_killed_is_finished_by_a_later_delivery,
    a_job_that_needs_longer_than_its_delivery_has_is_stopped_and_recorded,
    a_signal_stops_the_job_records_it_and_answers_before_the_end,
    an_idle_handler_ends_at_once,
    a_handler_that_cannot_start_says_why,
    a_claim_store_that_is_away_brings_everything_again,
    a_sweep_sends_what_nobody_delivers_again,
    racing_deliveries_run_each_job_once,
}

/// A job that notes the key, the attempt and what it was given, and refuses keys with `bad` in them.
pub(crate) const NOTES: &str = r#"
echo "$FIRSTCLAIM_JOB_KEY $FIRSTCLAIM_JOB_ATTEMPT $(cat "$1")" >> ran
case "$FIRSTCLAIM_JOB_KEY" in *bad*) exit 1;; esac
"#;

/// A job that waits for a file, and notes its start and its end.
pub(crate) const WAITS: &str = r#"
echo "$FIRSTCLAIM_JOB_ATTEMPT $$" >> started
while [ ! -e go ]; do sleep 0.05; done
echo "$FIRSTCLAIM_JOB_ATTEMPT" >> ended
"#;

/// Lets jobs end that wait.
pub(crate) fn go(cloud: &impl Cloud) {
    cloud.folder().write("go", "");
}

/// Hands messages to a handler, and waits until a job runs.
fn running<C: Cloud>(cloud: &C, handler: &Handler<C::Api>, messages: &[Message]) -> Pending {
    let pending = cloud.send(handler, messages);
    eventually("the job runs", || {
        !cloud.folder().lines("started").is_empty()
    });
    pending
}

fn a_written_object_is_done_once_however_often_it_is_delivered<C: Cloud>() {
    let cloud = C::new(NOTES);
    let handler = cloud.handler(&[]);
    cloud.put("in/roads.shp", "first");
    // The cloud's own notification, which is delivered, and then delivered again.
    let mut notified = None;
    eventually("the notification is there", || {
        let mut received = cloud.receive().into_iter();
        notified = received.find(|message| message.body.contains("roads.shp"));
        notified.is_some()
    });
    let body = notified.unwrap().body;
    for id in ["m1", "m2"] {
        assert_eq!(cloud.deliver(&handler, &[Message::new(id, &*body)]), []);
    }
    assert_eq!(cloud.folder().lines("ran"), ["in/roads.shp 1 first"]);
    let claim = cloud.claim();
    assert_eq!(claim.standing(), ("done", 1));
    let log = handler.log();
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains("\"outcome\":\"done\""))
        .collect();
    assert_eq!(lines.len(), 1, "{log}");
    let line: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(line["job_id"], claim.key.as_str());
}

fn the_queue_is_emptied_whatever_the_keys_are<C: Cloud>() {
    let cloud = C::new(NOTES);
    let handler = cloud.handler(&[]);
    let keys = [
        "a b.shp",
        "a+b.shp",
        "a%2Bb.shp",
        "100%.shp",
        "straße/日本.shp",
        "a//b.shp",
        "a/b.shp",
        "q?x=1&y=2#z;w.shp",
        "=:@,$.shp",
    ];
    for (number, key) in keys.iter().enumerate() {
        cloud.put(key, &number.to_string());
    }
    cloud.drain(&handler);
    let mut ran = cloud.folder().lines("ran");
    let mut expected: Vec<_> = keys
        .iter()
        .enumerate()
        .map(|(number, key)| format!("{key} 1 {number}"))
        .collect();
    ran.sort();
    expected.sort();
    assert_eq!(ran, expected);
}

fn an_overwritten_object_is_a_job_of_its_own<C: Cloud>() {
    let cloud = C::new(NOTES);
    let handler = cloud.handler(&[]);
    for content in ["first", "second"] {
        cloud.put("roads.shp", content);
        cloud.drain(&handler);
    }
    assert_eq!(
        cloud.folder().lines("ran"),
        ["roads.shp 1 first", "roads.shp 1 second"]
    );
    assert_eq!(cloud.claims().len(), 2);
}

fn of_several_messages_only_what_failed_comes_again<C: Cloud>() {
    let cloud = C::new(NOTES);
    let handler = cloud.handler(&[("FIRSTCLAIM_CONCURRENCY", "4")]);
    let good = cloud.written("good.shp", "good");
    let bad = cloud.written("bad.shp", "bad");
    let garbage = Message::new("garbage", "no event at all");
    let equal = Message::new("good again", &*good.body);
    let other = cloud.written("other.shp", "other");
    let messages = [good, bad.clone(), garbage, equal, other];
    assert_eq!(cloud.deliver(&handler, &messages), [bad]);
    let mut ran = cloud.folder().lines("ran");
    ran.sort();
    assert_eq!(
        ran,
        ["bad.shp 1 bad", "good.shp 1 good", "other.shp 1 other"]
    );
    assert_eq!(cloud.claim_of("good.shp").standing(), ("done", 1));
    assert_eq!(cloud.claim_of("bad.shp").standing(), ("failed", 1));
    assert_eq!(cloud.claim_of("other.shp").standing(), ("done", 1));
}

fn what_cannot_be_read_is_recorded_and_not_delivered_again<C: Cloud>() {
    let cloud = C::new(NOTES);
    let handler = cloud.handler(&[]);
    let bodies = ["no event at all", "{}", "null", r#"{"hello":"world"}"#];
    for (number, body) in bodies.into_iter().enumerate() {
        // Twice: what is recorded is the same.
        for _ in 0..2 {
            let message = Message::new(&number.to_string(), body);
            assert_eq!(cloud.deliver(&handler, &[message]), [], "{body}");
        }
    }
    let claims = cloud.claims();
    assert_eq!(claims.len(), bodies.len());
    for claim in claims {
        assert_eq!(claim.ending(), ("rejected", "unreadable"));
        assert!(claim.record.body.is_some(), "{claim:?}");
    }
    assert_eq!(cloud.folder().lines("ran").len(), 0);
}

fn a_job_whose_handler_was_killed_is_finished_by_a_later_delivery<C: Cloud>() {
    let cloud = C::new(WAITS);
    let short = [("FIRSTCLAIM_LEASE_SECONDS", "2")];
    let (mut first, second) = (cloud.handler(&short), cloud.handler(&short));
    cloud.put("roads.shp", "content");
    let messages = cloud.receive();
    running(&cloud, &first, &messages);
    first.signal("KILL");
    assert_eq!(first.end(), -1);
    assert!(first.log().contains("claimed"), "it left no trace");
    go(&cloud);
    // The queue gives the message out again, at first while the lease lasts.
    cloud.drain(&second);
    assert_eq!(cloud.claim_of("roads.shp").standing(), ("done", 2));
    let ended = cloud.folder().lines("ended");
    assert_eq!(
        ended.iter().filter(|attempt| *attempt == "2").count(),
        1,
        "{ended:?}"
    );
    // Its copy of the object is gone once the environment has a process again.
    let next = cloud.handler(&[]);
    assert_eq!(
        cloud.deliver(&next, &[Message::new("m", "no event at all")]),
        []
    );
    assert_eq!(first.copies(), 0);
}

fn a_job_that_needs_longer_than_its_delivery_has_is_stopped_and_recorded<C: Cloud>() {
    let cloud = C::new(WAITS);
    let handler = cloud.handler_with(Duration::from_secs(4), &[]);
    let message = [cloud.written("roads.shp", "content")];
    let first = running(&cloud, &handler, &message);
    let lease = cloud.claim().record.lease_until.unwrap().0;
    let deadline = first.deadline;
    assert!(
        u64::try_from(lease).unwrap() <= deadline,
        "the lease ends at {lease}, after the deadline {deadline}"
    );
    assert_eq!(first.again(), message);
    assert_eq!(cloud.claim().ending(), ("failed", "interrupted"));
    let started = cloud.folder().lines("started");
    let process = started[0].split(' ').nth(1).unwrap();
    eventually("the job's process is gone", || !is_alive(process));
    go(&cloud);
    assert_eq!(cloud.deliver(&handler, &message), []);
    assert_eq!(cloud.claim().standing(), ("done", 2));
    assert_eq!(cloud.folder().lines("ended"), ["2"]);
}

fn a_signal_stops_the_job_records_it_and_answers_before_the_end<C: Cloud>() {
    let cloud = C::new(WAITS);
    // Not the end of the delivery's time.
    let mut handler = cloud.handler_with(Duration::from_secs(2 * 60 * 60), &[]);
    let message = [cloud.written("roads.shp", "content")];
    let pending = running(&cloud, &handler, &message);
    handler.signal("TERM");
    assert_eq!(handler.end(), 0, "{}", handler.log());
    assert!(pending.is_answered());
    assert_eq!(pending.again(), message);
    assert_eq!(cloud.claim().ending(), ("failed", "interrupted"));
}

fn an_idle_handler_ends_at_once<C: Cloud>() {
    let cloud = C::new(WAITS);
    let mut handler = cloud.handler(&[]);
    go(&cloud);
    let message = cloud.written("roads.shp", "content");
    assert_eq!(cloud.deliver(&handler, &[message]), []);
    handler.signal("TERM");
    assert_eq!(handler.end(), 0);
}

fn a_handler_that_cannot_start_says_why<C: Cloud>() {
    let cloud = C::new(WAITS);
    let everywhere = [
        ("FIRSTCLAIM_LEASE_SECOND", "5"),
        ("FIRSTCLAIM_LOG", "a=b=c"),
        ("DEDUP_TTL_SECONDS", "60"),
    ];
    for &(name, value) in everywhere.iter().chain(cloud.unusable()) {
        let mut handler = cloud.handler(&[(name, value)]);
        assert_eq!(handler.end(), 1, "{name}={value}");
        for told in cloud.complaints(&handler) {
            assert!(told.contains(name), "{told}");
        }
        let log = handler.log();
        assert!(
            log.contains("cannot be started") && log.contains(name),
            "{log}"
        );
    }
}

fn a_claim_store_that_is_away_brings_everything_again<C: Cloud>() {
    let cloud = C::new(WAITS);
    let handler = cloud.handler(&[cloud.no_store()]);
    let messages = ["roads.shp", "rivers.shp"].map(|key| cloud.written(key, "content"));
    assert_eq!(cloud.deliver(&handler, &messages), messages);
    assert_eq!(cloud.folder().lines("started").len(), 0);
}

fn a_sweep_sends_what_nobody_delivers_again<C: Cloud>() {
    let cloud = C::new(WAITS);
    let without = cloud.handler(&[]);
    let error = cloud.sweep(&without).unwrap_err();
    assert!(error.contains(cloud.redrives().0), "{error}");
    // A job failed, and its message is gone.
    let short = cloud.handler_with(Duration::from_secs(3), &[]);
    let message = [cloud.written("roads.shp", "content")];
    assert_eq!(cloud.deliver(&short, &message), message);
    cloud.discard();
    let handler = cloud.handler(&[cloud.redrives()]);
    let sweep = || cloud.sweep(&handler).unwrap();
    assert_eq!(sweep(), Swept { sent: 0, stuck: 0 });
    // An hour later.
    cloud.age(&cloud.claim().key, Duration::from_secs(3_600));
    assert_eq!(sweep(), Swept { sent: 1, stuck: 1 });
    assert_eq!(sweep(), Swept { sent: 0, stuck: 0 });
    go(&cloud);
    cloud.drain(&handler);
    assert_eq!(cloud.claim().standing(), ("done", 2));
}

/// The job of [`race`].
pub(crate) const RACED: &str = r#"echo "$FIRSTCLAIM_JOB_ID" >> ran"#;

fn racing_deliveries_run_each_job_once<C: Cloud>() {
    race(&C::new(RACED));
}

/// Events, each delivered to every handler at once: one run each.
pub(crate) fn race<C: Cloud>(cloud: &C) {
    const EVENTS: usize = 200;
    const HANDLERS: usize = 16;
    let messages: Vec<Message> = (0..EVENTS)
        .map(|number| {
            let key = format!("{number}.shp");
            cloud.written(&key, &key)
        })
        .collect();
    std::thread::scope(|scope| {
        for _ in 0..HANDLERS {
            scope.spawn(|| {
                let handler = cloud.handler(&[("FIRSTCLAIM_CONCURRENCY", "10")]);
                for messages in messages.chunks(10) {
                    let mut left = messages.to_vec();
                    eventually("the messages are acknowledged", || {
                        left = cloud.deliver(&handler, &left);
                        left.is_empty()
                    });
                }
            });
        }
    });
    let mut ran = cloud.folder().lines("ran");
    assert_eq!(ran.len(), EVENTS);
    ran.sort();
    ran.dedup();
    assert_eq!(ran.len(), EVENTS, "a job ran twice and another never");
    let claims = cloud.claims();
    assert_eq!(claims.len(), EVENTS);
    assert!(claims.iter().all(|claim| claim.standing() == ("done", 1)));
}
