//! A version: what must still stand in an item for a write to take place.
//!
//! It is the texts of `revision`, `owner`, `attempt`, `status` and `claimed_at`, separated by spaces, `-` for one that is
//! missing. Our own writes never repeat a revision. Programs that know nothing of revisions flip the status, or put an item
//! of their own in the place of ours: the other four tell those apart.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use identity_core::claim::{Precondition, Version, fields::Field};

use super::attributes::{self, Item};

/// The attributes that a version is made of, and whether they are numbers.
const PARTS: [(&str, bool); 5] = [
    (attributes::of(Field::Revision), false),
    (attributes::of(Field::Owner), false),
    (attributes::of(Field::Attempt), true),
    (attributes::of(Field::Status), false),
    (attributes::of(Field::ClaimedAt), true),
];

const MISSING: &str = "-";

/// The version of an item that decodes.
pub(super) fn of(item: &Item) -> Version {
    let parts = PARTS.map(|(name, _)| match item.get(name) {
        Some(AttributeValue::S(text) | AttributeValue::N(text)) => text.as_str(),
        _ => MISSING,
    });
    Version(parts.join(" "))
}

/// A condition as the service reads it.
#[derive(Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) expression: String,
    pub(super) names: Option<HashMap<String, String>>,
    pub(super) values: Option<HashMap<String, AttributeValue>>,
}

impl Condition {
    /// The condition that `when` is, or `None` if no item can ever meet it.
    pub(super) fn of(when: &Precondition) -> Option<Self> {
        match when {
            Precondition::Absent => Some(Self {
                expression: format!("attribute_not_exists({})", attributes::KEY),
                names: None,
                values: None,
            }),
            Precondition::Unchanged(version) => Self::unchanged(version),
        }
    }

    fn unchanged(version: &Version) -> Option<Self> {
        let texts: Vec<&str> = version.0.split(' ').collect();
        if texts.len() != PARTS.len() {
            return None;
        }
        // An item of which all five are missing would be met by no item at all.
        let mut clauses = vec![format!("attribute_exists({})", attributes::KEY)];
        let mut names = HashMap::new();
        let mut values = HashMap::new();
        for ((name, is_number), text) in PARTS.into_iter().zip(texts) {
            // `status` is one of the service's reserved words.
            names.insert(format!("#{name}"), name.to_owned());
            if text == MISSING {
                clauses.push(format!("attribute_not_exists(#{name})"));
                continue;
            }
            clauses.push(format!("#{name} = :{name}"));
            let value = if is_number {
                AttributeValue::N(number(text)?.to_owned())
            } else {
                AttributeValue::S(text.to_owned())
            };
            values.insert(format!(":{name}"), value);
        }
        Some(Self {
            expression: clauses.join(" AND "),
            names: Some(names),
            values: Some(values).filter(|values| !values.is_empty()),
        })
    }
}

/// A number's text, unless the service would refuse it.
fn number(text: &str) -> Option<&str> {
    text.parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_item_can_be_is_no_condition() {
        for text in [
            "",
            "-",
            "- - - done",
            "- - x done 1",
            "- - 1 done inf",
            "a b 1 done 1 1",
        ] {
            let when = Precondition::Unchanged(Version(text.to_owned()));
            assert_eq!(Condition::of(&when), None, "{text}");
        }
    }

    #[test]
    fn a_missing_attribute_must_stay_missing() {
        let when = Precondition::Unchanged(Version("- - - processing 5".to_owned()));
        let condition = Condition::of(&when).unwrap();
        assert_eq!(
            condition.expression,
            "attribute_exists(job_id) AND attribute_not_exists(#revision) AND attribute_not_exists(#owner) AND \
             attribute_not_exists(#attempt) AND #status = :status AND #claimed_at = :claimed_at"
        );
        let values = condition.values.unwrap();
        assert_eq!(values[":claimed_at"], AttributeValue::N("5".to_owned()));
        assert_eq!(values.len(), 2);
    }
}
