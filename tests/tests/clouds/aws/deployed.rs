//! `deploy/aws` as Terraform made it on moto, with the real function in the place of its function.

use serde_json::Value;
use tests::{
    clouds::{
        Cloud as _,
        aws::{Aws, Names},
    },
    server,
    terraform::Deployment,
};

#[test]
fn an_object_in_the_bucket_that_terraform_made_is_done_through_its_queue() {
    let name = format!("deployed-{:08x}", fastrand::u32(..));
    let moto = server("TEST_MOTO_URL");
    let deployment = Deployment::new(&moto, &[("name", &name)]);
    let outputs = deployment.apply();
    let output = |name: &str| outputs[name].as_str().unwrap().to_owned();
    let names = Names {
        bucket: output("bucket"),
        table: output("table"),
        queue_url: output("queue_url"),
        queue_arn: output("queue_arn"),
    };
    let cloud = Aws::of(moto.clone(), moto, names, r#"echo "$(cat "$1")" >> ran"#);
    let Value::Object(environment) = &outputs["environment"] else {
        panic!("no environment: {outputs}")
    };
    let settings: Vec<(&str, &str)> = environment
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect();
    let function = cloud.handler(&settings);
    cloud.put("in/a b+c.shp", "content");
    cloud.drain(&function);
    assert_eq!(
        cloud.folder().lines("ran"),
        ["content"],
        "{}",
        function.log()
    );
    assert_eq!(cloud.claim_of("in/a b+c.shp").standing(), ("done", 1));
    // What the schedule sends.
    let state = deployment.state();
    let resources = state["values"]["root_module"]["resources"]
        .as_array()
        .unwrap();
    let schedule = resources
        .iter()
        .find(|resource| resource["type"] == "aws_scheduler_schedule")
        .unwrap();
    let input = schedule["values"]["target"][0]["input"].as_str().unwrap();
    assert_eq!(function.api.invoke(input).unwrap()["sent"], 0);
}
