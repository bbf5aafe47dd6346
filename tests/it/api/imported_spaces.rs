//! Tests that a space file cannot enable Auto Mode or tool calls without approval.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::on_sqlite;
use crate::support::file_uploads::{fetch, import};
use crate::support::http_client::{expect, id};
use crate::support::space_content::{unpacked, with_file};

on_sqlite! {
    async fn an_imported_space_has_auto_mode_off_and_tools_need_approval(backend) {
        let app = TestApp::start(backend).await;
        let ann = app.admin().await;
        let space = ann.create_space("The inn", json!({})).await;
        let packed = fetch(&ann, &format!("/api/spaces/{}/export", id(&space))).await;
        let mut document: Value = serde_json::from_slice(&unpacked(&packed)["space.json"]).unwrap();
        document["auto_mode_enabled"] = json!(true);
        document["auto_mode_delay_ms"] = json!(0);
        document["settings"] = json!({
            "tools": {"dice": "allowed", "time": "allowed", "web_fetch": "allowed"},
            "tool_servers": [{"label": "wiki", "url": "https://wiki.example/mcp", "use": "allowed"}],
        });
        let file = with_file(&packed, "space.json", document.to_string().as_bytes());

        let done = import(&ann, "/api/spaces/import", "inn.zip", &file).await;

        let imported = expect(200, ann.get(&format!("/api/spaces/{}", done["space_id"])).await);
        assert_eq!((&imported["auto_mode_enabled"], &imported["auto_mode_delay_ms"]), (&json!(false), &json!(0)));
        let with_approval = json!({"dice": "with_approval", "time": "with_approval", "web_fetch": "with_approval"});
        assert_eq!(imported["settings"]["tools"], with_approval);
        assert_eq!(imported["settings"]["tool_servers"][0]["use"], "with_approval");
        app.close().await;
    }
}
