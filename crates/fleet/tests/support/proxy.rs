use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A network between a machine and a server, which can be interrupted.
pub(crate) struct Proxy {
    pub(crate) url: String,
    state: Arc<Network>,
}

#[derive(Default)]
struct Network {
    is_cut: AtomicBool,
    cut: Notify,
}

impl Proxy {
    pub(crate) async fn start(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        let state = Arc::new(Network::default());
        let network = state.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let network = network.clone();
                tokio::spawn(async move {
                    let cut = network.cut.notified();
                    // The connection of a machine without a network is not answered.
                    if network.is_cut.load(Ordering::SeqCst) {
                        return;
                    }
                    let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        () = cut => {}
                    }
                });
            }
        });
        Self { url, state }
    }

    /// Ends all connections, and refuses new ones.
    pub(crate) async fn cut(&self) {
        self.state.is_cut.store(true, Ordering::SeqCst);
        self.state.cut.notify_waiters();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    pub(crate) fn heal(&self) {
        self.state.is_cut.store(false, Ordering::SeqCst);
    }
}
