//! Query parameters: their description, and invalid ones.

use amplifier_server::access::Role;
use amplifier_server::description;

use super::place::{Asked, Place};

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_with_query_parameters_documents_400_and_answers_it() {
    let place = Place::new().await;
    let description = description();
    let mut checked = 0;
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let names: Vec<&str> = parameters
                .iter()
                .filter(|parameter| parameter["in"] == "query")
                .map(|parameter| parameter["name"].as_str().unwrap())
                .collect();
            let documented = &operation["responses"]["400"];
            if names.is_empty() {
                assert!(documented.is_null(), "{method} {path} has nothing that could be wrong behind the `?`");
                continue;
            }
            let form = &documented["content"]["application/json"]["schema"]["$ref"];
            assert_eq!(form, "#/components/schemas/ErrorResponse", "{method} {path}");
            for name in names {
                let path = path.replace("{id}", "s-1");
                let asked = Asked::new(method, &format!("{path}?{name}=1&{name}=1"));
                let reply = place.ask(&asked.with("Authorization", &place.bearer(Role::Admin)));
                assert_eq!((reply.status, reply.code().as_str()), (400, "query"), "{method} {path}: {name} twice");
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "{checked} parameters");
}
