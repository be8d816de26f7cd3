//! Many functions at once.

use tests::{
    clouds::aws::{Cloud, Message, batch, failures},
    eventually, notification, record, server,
};

const EVENTS: usize = 200;
const FUNCTIONS: usize = 16;

/// Events, each delivered to every function at once: one run each.
fn race(tables: String) {
    let cloud = Cloud::on(
        server("TEST_MOTO_URL"),
        tables,
        r#"echo "$FIRSTCLAIM_JOB_ID" >> ran"#,
    );
    let messages: Vec<Message> = (0..EVENTS)
        .map(|number| {
            let key = format!("{number}.shp");
            let etag = cloud.put(&key, &key).0;
            let body = notification(&[record(&key, &etag).replace("geo-in", &cloud.name)]);
            Message::new(&key, body)
        })
        .collect();
    std::thread::scope(|scope| {
        for _ in 0..FUNCTIONS {
            scope.spawn(|| {
                let function = cloud.function(&[("FIRSTCLAIM_CONCURRENCY", "10")]);
                for messages in messages.chunks(10) {
                    let mut left = messages.to_vec();
                    eventually("the batch is acknowledged", || {
                        let answer = function.api.invoke(&batch("no queue of ours", &left));
                        let again = failures(&answer);
                        left.retain(|message| again.contains(&message.id));
                        left.is_empty()
                    });
                }
            });
        }
    });
    let mut ran = cloud.lines("ran");
    assert_eq!(ran.len(), EVENTS);
    ran.sort();
    ran.dedup();
    assert_eq!(ran.len(), EVENTS, "a job ran twice and another never");
    let rows = cloud.rows();
    assert_eq!(rows.len(), EVENTS);
    assert!(
        rows.iter()
            .all(|row| row.text("status") == "done" && row.text("attempt") == "1")
    );
}

#[test]
fn racing_deliveries_run_each_job_once_on_moto() {
    race(server("TEST_MOTO_URL"));
}

#[test]
fn racing_deliveries_run_each_job_once_on_dynalite() {
    race(server("TEST_DYNALITE_URL"));
}
