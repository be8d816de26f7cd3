//! Records as rows and back, and what no row can hold.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::claim::conformance::samples;

/// A store at its barest: the row is kept as it is written.
fn kept(key: &ClaimKey, record: &Record) -> BTreeMap<Field, Value> {
    write(key, record).unwrap().into_iter().collect()
}

fn read_back(row: &BTreeMap<Field, Value>) -> Result<(ClaimKey, Record), Misfit> {
    read(|field| Ok(row.get(&field).cloned()))
}

proptest! {
    #[test]
    fn a_row_says_what_its_record_said(key in samples::key(), record in samples::record()) {
        prop_assert_eq!(read_back(&kept(&key, &record)).unwrap(), (key, record));
    }

    #[test]
    fn an_empty_text_of_a_pipeline_may_be_left_out(key in samples::key(), record in samples::record()) {
        let mut row = kept(&key, &record);
        row.retain(|field, value| !field.is_pipelines() || *value != Value::Text(String::new()));
        prop_assert_eq!(read_back(&row).unwrap(), (key, record));
    }
}

#[test]
fn every_field_of_a_full_record_is_written_and_read_and_means_something() {
    let (key, record) = (samples::numbered_key(1), samples::full());
    let row = kept(&key, &record);
    assert!(row.keys().eq(Field::ALL), "{row:?}");

    let mut asked = Vec::new();
    let read = read(|field| {
        asked.push(field);
        Ok(row.get(&field).cloned())
    });
    assert_eq!(read.unwrap(), (key.clone(), record.clone()));
    asked.sort();
    assert_eq!(asked, Field::ALL, "each is read once");

    for field in Field::ALL {
        let mut without = row.clone();
        without.remove(field);
        let same = read_back(&without).is_ok_and(|read| read == (key.clone(), record.clone()));
        assert!(!same, "{field:?} is not read into the record");
    }
}

#[test]
fn only_the_texts_of_a_pipeline_may_be_left_out() {
    let pipelines = Field::ALL.iter().filter(|field| field.is_pipelines());
    let names: Vec<_> = pipelines.map(|field| field.name()).collect();
    let expected = [
        Field::PipelineName,
        Field::PipelineVersion,
        Field::Scheme,
        Field::ParamsDigest,
        Field::ContractDigest,
    ];
    assert_eq!(names, expected.map(Field::name));
    let (key, full) = (samples::numbered_key(1), samples::full());
    let mut row = kept(&key, &full);
    for field in expected {
        row.remove(&field);
    }
    let pipeline = RecordedPipeline::default();
    assert_eq!(read_back(&row).unwrap(), (key, Record { pipeline, ..full }));
}

#[test]
fn a_record_whose_attempts_all_count_has_the_row_that_it_had_before_some_did_not() {
    let counted = Record {
        uncounted: 0,
        ..samples::full()
    };
    let row = kept(&samples::numbered_key(1), &counted);
    assert!(!row.contains_key(&Field::Uncounted), "{row:?}");
}

#[test]
fn names_are_told_apart_and_kinds_are_those_of_the_values() {
    let mut names: Vec<_> = Field::ALL.iter().map(|field| field.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Field::ALL.len());
    for (field, value) in kept(&samples::numbered_key(1), &samples::full()) {
        let fits = match value {
            Value::Text(_) => field.kind() == Kind::Text,
            Value::Number(_) => {
                matches!(field.kind(), Kind::Count | Kind::Seconds | Kind::Millis)
            }
            Value::Bytes(_) => field.kind() == Kind::Bytes,
        };
        assert!(fits, "{field:?}");
    }
}

#[test]
fn a_row_of_a_program_that_knows_no_leases_is_a_claim() {
    let row = BTreeMap::from([
        (Field::Key, Value::Text("ab".repeat(32))),
        (Field::Status, Value::Text("done".to_owned())),
    ]);
    let record = read_back(&row).unwrap().1;
    let expected = Record::new(
        Status::Done,
        UnixSeconds::default(),
        RecordedPipeline::default(),
    );
    assert_eq!(record, expected);
}

#[test]
fn what_no_claim_can_hold_is_named_with_what_is_expected_and_what_stands_there() {
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    let number = |number| Some(Value::Number(number));
    let (lower, upper) = ("ab".repeat(16), "AB".repeat(16));
    let count = "a number from 0 to 4294967295";
    let cases = [
        (Field::Key, text("job:1"), "64 lower-case hex characters"),
        (Field::Key, None, "64 lower-case hex characters"),
        (Field::Key, number(5), "a string"),
        (Field::Status, text("finished"), STATUS),
        (Field::Status, None, STATUS),
        (Field::Status, number(1), "a string"),
        (Field::Attempt, number(-1), count),
        (Field::Attempt, number(4_294_967_296), count),
        (Field::Attempt, text("1"), count),
        (Field::Owner, text("me"), "32 lower-case hex characters"),
        // Written back, it would be another text.
        (Field::Owner, text(&upper), "32 lower-case hex characters"),
        (Field::Revision, text("1"), REVISION),
        (Field::Revision, text(&format!("{upper}.1")), REVISION),
        (Field::Revision, text(&format!("{lower}.01")), REVISION),
        (Field::ClaimedAt, text("yesterday"), "a whole number"),
        (
            Field::LeaseUntil,
            Some(Value::Bytes(vec![1])),
            "a whole number",
        ),
        (Field::ObjectProvider, text("ftp"), PROVIDER),
        (Field::TokenKind, text("md5"), TokenKind::EXPECTED),
        (Field::TokenKind, None, TOKEN),
        (Field::ObjectContainer, None, OBJECT),
        (Field::Redrives, number(-1), count),
        (Field::Reason, text("because"), "the name of a reason"),
        (Field::Body, text("text"), "bytes"),
        (Field::ReleasedFrom, text("x"), STATUS),
        (Field::ReleasedAttempt, number(-1), count),
        (Field::ReleasedAt, None, RELEASE),
    ];
    let row = kept(&samples::numbered_key(1), &samples::full());
    for (field, value, expected) in cases {
        let mut row = row.clone();
        match &value {
            Some(value) => row.insert(field, value.clone()),
            None => row.remove(&field),
        };
        let misfit = read_back(&row).unwrap_err();
        assert_eq!((misfit.field, misfit.expected), (field, expected));
        match value {
            Some(Value::Text(text)) if misfit.expected != field.kind().expected() => {
                assert_eq!(misfit.got, text);
            }
            Some(Value::Number(number)) => assert!(misfit.got.contains(&number.to_string())),
            _ => {}
        }
    }
}

#[test]
fn a_field_that_is_longer_than_stores_keep_is_not_written() {
    let result = Record {
        result: Some("x".repeat(Record::MAX_RESULT_BYTES + 1)),
        ..samples::full()
    };
    let body = Record {
        body: Some(vec![0; Record::MAX_BODY_BYTES + 1]),
        ..samples::full()
    };
    for (record, field, expected, got) in [
        (result, Field::Result, "at most 16384 bytes", "16385 bytes"),
        (body, Field::Body, "at most 32768 bytes", "32769 bytes"),
    ] {
        let misfit = Misfit::new(field, expected, got);
        let key = samples::numbered_key(1);
        assert_eq!(write(&key, &record), Err(misfit.clone()));
        assert_eq!(check(&key, &record), Err(misfit));
    }
}

#[test]
fn an_error_keeps_the_beginning_of_a_long_text() {
    let mut row = kept(&samples::numbered_key(1), &samples::full());
    row.insert(Field::Status, Value::Text("é".repeat(1_000_000)));
    assert_eq!(read_back(&row).unwrap_err().got, "é".repeat(100));
}

/// A row of an older program has no such column, and reads the same.
#[test]
fn a_count_of_none_is_left_out() {
    let written = |uncounted| {
        let record = Record {
            uncounted,
            ..samples::full()
        };
        let fields = write(&samples::numbered_key(1), &record).unwrap();
        fields.iter().any(|(field, _)| *field == Field::Uncounted)
    };
    assert_eq!([0, 1].map(written), [false, true]);
}
