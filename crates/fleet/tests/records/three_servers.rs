//! A centre of three servers that lose their leader.

use amplifier_fleet::subjects;

use super::*;
use crate::support::{Cluster, new_server};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_the_leader_of_three_servers_is_killed_or_paused() {
    let Some(program) = new_server() else { return };
    let mut cluster = Cluster::start(&program, "");
    let connection = cluster.connect("admin").await;
    let start = Instant::now();
    // A new cluster elects its leader first.
    while let Err(error) = create_streams(&connection, Replicas::Three, 64 * MIB).await {
        assert!(start.elapsed() < LIMIT, "{error}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let mirrors = tempfile::tempdir().unwrap();
    let _collector = collect(&connection, "a", mirrors.path()).await;
    let machines = ["m1", "m2"].map(Machine::new);
    let shippers = machines.each_ref().map(|machine| machine.ship(&connection));
    for round in 0..2 {
        for machine in &machines {
            machine.write(300);
        }
        let leader = cluster.leader(&connection, subjects::AUDIT).await;
        cluster.servers[leader].kill();
        for machine in &machines {
            machine.write(300);
        }
        for (machine, shipper) in machines.iter().zip(&shippers) {
            until_received(shipper, machine).await;
        }
        cluster.servers[leader].restart();
        if round == 0 {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }
    // Longer than an election takes.
    let leader = cluster.leader(&connection, subjects::AUDIT).await;
    cluster.servers[leader].pause();
    for machine in &machines {
        machine.write(300);
    }
    tokio::time::sleep(Duration::from_secs(9)).await;
    cluster.servers[leader].resume();
    for (machine, shipper) in machines.iter().zip(&shippers) {
        machine.write(10);
        until_received(shipper, machine).await;
    }
    for (machine, shipper) in machines.iter().zip(&shippers) {
        assert_eq!(shipper.status().borrow().lost_by_centre, 0, "{:?}", shipper.status().borrow());
        assert_mirrored(machine, mirrors.path());
    }
}
