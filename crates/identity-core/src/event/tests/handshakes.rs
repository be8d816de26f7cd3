//! Both handshakes of Event Grid: by a code that is sent back, and by asking for permission.

use super::*;

// Case E20.
#[test]
fn a_handshake_by_code_is_answered_with_the_code_and_200() {
    let validation = json!([{
        "eventType": "Microsoft.EventGrid.SubscriptionValidationEvent",
        "subject": "",
        "data": {"validationCode": "5\"12", "validationUrl": "https://example.com"},
    }]);
    let items = read_request(
        "POST",
        &[("aeg-event-type", "SubscriptionValidation")],
        &validation.to_string(),
    );
    match &items[..] {
        [
            Item {
                reading: Reading::Reply(reply),
                ..
            },
        ] => assert_eq!(
            *reply,
            Reply {
                status: 200,
                headers: vec![],
                body: Some(r#"{"validationResponse":"5\"12"}"#.into()),
            }
        ),
        other => panic!("{other:?}"),
    }
    let mut no_code = validation;
    no_code[0]["data"] = json!({});
    assert_eq!(
        error_in(&no_code.to_string()).to_string(),
        "data.validationCode is missing"
    );
}

// Case E20.
#[test]
fn a_handshake_by_origin_is_allowed_and_nothing_else_is_echoed() {
    let reply =
        |headers: &[(&str, &str)]| match read_request("OPTIONS", headers, "").remove(0).reading {
            Reading::Reply(reply) => reply,
            other => panic!("{other:?}"),
        };
    let origin = ("WebHook-Request-Origin", "eventgrid.azure.net");
    let allowed = |more: &[(&'static str, &str)]| {
        let mut headers = vec![("webhook-allowed-origin", "eventgrid.azure.net".to_owned())];
        headers.extend(
            more.iter()
                .map(|(name, value)| (*name, (*value).to_owned())),
        );
        headers.push(("allow", "POST, OPTIONS".to_owned()));
        Reply {
            status: 200,
            headers,
            body: None,
        }
    };
    assert_eq!(reply(&[origin]), allowed(&[]));
    for rate in ["120", "*"] {
        assert_eq!(
            reply(&[origin, ("webhook-request-rate", rate)]),
            allowed(&[("webhook-allowed-rate", rate)])
        );
    }
    for rate in ["", "1\r\nset-cookie: a"] {
        assert_eq!(
            reply(&[origin, ("webhook-request-rate", rate)]),
            allowed(&[])
        );
    }
    for bad in ["", "a b", "a\r\nset-cookie: b", "ö"] {
        let unreadable = unreadable_of(read_request("OPTIONS", &[(origin.0, bad)], ""));
        assert!(
            matches!(unreadable.error, ReadError::UnusableHeader { .. }),
            "{bad}"
        );
    }
    for (method, headers) in [("OPTIONS", &[][..]), ("POST", &[origin])] {
        let unreadable = unreadable_of(read_request(method, headers, ""));
        assert!(matches!(unreadable.error, ReadError::Empty));
    }
}
