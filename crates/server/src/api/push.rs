//! Devices that receive push messages about approval requests.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::{Extension, Json as Reply};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, Json};
use crate::App;
use crate::access::{Identity, Role, Viewer};
use crate::api_types::ErrorResponse;
use crate::push::{Device, DeviceError, Notifier};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(status)).routes(routes!(add)).routes(routes!(remove))
}

/// The server's key for push messages, and the devices of the user.
#[derive(Debug, Serialize, ToSchema)]
struct PushStatus {
    /// The public key that a browser subscribes with (`applicationServerKey`), as base64url.
    key: String,
    /// The devices.
    devices: Vec<PushDevice>,
}

/// A device that receives push messages.
#[derive(Debug, Serialize, ToSchema)]
struct PushDevice {
    /// Identifies the device: the first 16 bytes of the SHA-256 of its endpoint, as base64url.
    id: String,
    /// `true` if its notifications open their request without signing in.
    answers: bool,
}

impl From<Device> for PushDevice {
    fn from(Device { id, answers, .. }: Device) -> Self {
        Self { id, answers }
    }
}

/// A subscription to push messages, as the browser made it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DeviceSubscription {
    /// Address of the push service for this device.
    endpoint: String,
    /// Public key of the device, as base64url.
    p256dh: String,
    /// Authentication secret of the device, as base64url.
    auth: String,
    /// `true` if notifications may open their request without signing in. For approvers only.
    #[serde(default)]
    answers: bool,
}

/// Returns the server's key for push messages, and the user's devices
#[utoipa::path(get, path = "/api/push", tag = "access",
    responses((status = 200, body = PushStatus), (status = 500, body = ErrorResponse)))]
async fn status(Viewer(who): Viewer, Extension(notifier): Extension<Notifier>) -> Result<Reply<PushStatus>, ApiError> {
    let key = notifier.public_key().map_err(ApiError::internal)?;
    let devices = notifier.devices_of(&who.name).into_iter().map(PushDevice::from).collect();
    Ok(Reply(PushStatus { key, devices }))
}

/// Sends push messages to a device, until its user signs out
#[utoipa::path(post, path = "/api/push", tag = "access", request_body = DeviceSubscription, responses(
    (status = 201, description = "The device was added, or replaced.", body = PushDevice),
    (status = 409, description = "Too many devices.", body = ErrorResponse),
    (status = 500, body = ErrorResponse),
))]
async fn add(
    Viewer(who): Viewer,
    Extension(notifier): Extension<Notifier>,
    Json(subscription): Json<DeviceSubscription>,
) -> Result<(StatusCode, Reply<PushDevice>), ApiError> {
    let device = device(subscription, &who)?;
    let added = notifier.add_device(device).map_err(|error| match error {
        DeviceError::Invalid(problem) => ApiError::unusable(problem),
        DeviceError::TooMany => ApiError::conflict("too_many_devices", "too many devices; remove some"),
        DeviceError::Failed(error) => ApiError::internal(error),
    })?;
    Ok((StatusCode::CREATED, Reply(added.into())))
}

fn device(subscription: DeviceSubscription, who: &Identity) -> Result<Device, ApiError> {
    let DeviceSubscription { endpoint, p256dh, auth, answers } = subscription;
    if answers && who.role < Role::Approver {
        let message =
            format!("role `{}` required to answer from notifications, but yours is `{}`", Role::Approver, who.role);
        return Err(ApiError::new(StatusCode::FORBIDDEN, "role", message));
    }
    Ok(Device::new(endpoint, p256dh, auth, answers, who))
}

/// Sends no more push messages to a device of the user
#[utoipa::path(delete, path = "/api/push/{id}", tag = "access", params(("id" = String, Path, description = "The id of the device.")),
    responses((status = 204, description = "The device is removed."), (status = 404, body = ErrorResponse), (status = 500, body = ErrorResponse)))]
async fn remove(
    Viewer(who): Viewer,
    Extension(notifier): Extension<Notifier>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let removed = notifier.remove_device(&id, &who.name).map_err(ApiError::internal)?;
    if removed { Ok(StatusCode::NO_CONTENT) } else { Err(ApiError::not_found(format!("unknown device `{id}`"))) }
}
