//! Tests of access by API key: a key gives access only to the data of its user.

use serde_json::json;

use super::fixture::{V1Fixture, id};
use crate::support::backends::on_sqlite;
use crate::support::http_client::http_client;
use crate::support::v1_client::{V1Client, error_of};

on_sqlite! {
    async fn v1_accepts_an_api_key_but_no_session_cookie(backend) {
        let fixture = V1Fixture::open(backend).await;
        let path = format!("{}/v1/models", fixture.app.base);
        let status = async |name: &str, value: String| {
            let request = http_client().get(&path).header(name, value);
            let answer = request.send().await.unwrap();
            (answer.status().as_u16(), answer.json().await.unwrap())
        };

        for (name, value) in [
            ("x-none", String::new()),
            ("authorization", "Bearer trp_wrong".to_owned()),
            ("cookie", fixture.admin.cookie().to_owned()),
        ] {
            assert_eq!(error_of(&status(name, value).await).1, "invalid_api_key", "{name}");
        }
        let (_, keys) = fixture.admin.get("/api/api_keys").await;
        fixture.admin.delete(&format!("/api/api_keys/{}", keys["data"][0]["id"])).await;
        assert_eq!(fixture.program.get("/models").await.0, 401);
        fixture.close().await;
    }

    async fn v1_data_of_another_user_is_not_found(backend) {
        let fixture = V1Fixture::open(backend).await;
        let ben = V1Client::new(&fixture.app.register("ben").await).await;
        let response = fixture.program.respond(json!({ "input": "Hi." })).await;
        let path = format!("/responses/{}", id(&response));

        assert_eq!(ben.get(&path).await.0, 404);
        assert_eq!(ben.delete(&path).await.0, 404);
        assert_eq!(ben.post(&format!("{path}/cancel"), json!({})).await.0, 404);
        assert_eq!(ben.get(&format!("{path}/input_items")).await.0, 404);
        let next = json!({ "input": "x", "previous_response_id": id(&response) });
        let refused = ben.respond_with_error(next).await;
        assert_eq!(refused, (400, "previous_response_not_found".into(), json!("previous_response_id")));
        let item = json!({ "input": [{ "type": "item_reference", "id": response["output"][0]["id"] }] });
        assert_eq!(ben.respond_with_error(item).await.1, "invalid_value");
        let made = fixture.program.post("/conversations", json!({})).await.1;
        assert_eq!(ben.get(&format!("/conversations/{}", id(&made))).await.0, 404);
        assert_eq!(fixture.program.get(&path).await.0, 200);
        fixture.close().await;
    }
}
