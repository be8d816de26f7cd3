//! Many functions at once.

use tests::{
    aws::{Cloud, Message, batch, failures},
    eventually, notification, record, server,
};

const FUNCTIONS: usize = 16;

/// Events, each delivered 16 times at once, to as many functions: one run each.
fn race(events: usize, tables: String) {
    let cloud = Cloud::on(
        server("TEST_MOTO_URL"),
        tables,
        r#"echo "$FIRSTCLAIM_JOB_ID" >> ran"#,
    );
    let messages: Vec<Message> = (0..events)
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
    assert_eq!(ran.len(), events);
    ran.sort();
    ran.dedup();
    assert_eq!(ran.len(), events, "a job ran twice and another never");
    let rows = cloud.rows();
    assert_eq!(rows.len(), events);
    assert!(
        rows.iter()
            .all(|row| row.text("status") == "done" && row.text("attempt") == "1")
    );
}

#[test]
fn racing_deliveries_run_each_job_once_on_moto() {
    // moto takes one call at a time, and tens of milliseconds for it.
    race(20, server("TEST_MOTO_URL"));
}

#[test]
fn racing_deliveries_run_each_job_once_on_dynalite() {
    race(200, server("TEST_DYNALITE_URL"));
}
