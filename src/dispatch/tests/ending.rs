//! Ending an agent on purpose.

use std::process::{Child, Command};

use super::after_a_crash::taken_by;
use super::*;
use crate::model::Phase;
use crate::process::identity::identify;

/// A process that is killed when its test ends, however that ends.
struct Bystander(Child);

impl Drop for Bystander {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a process to be left alone")]
async fn a_stop_signals_no_process_that_was_recorded_in_an_earlier_boot() {
    let world = World::new().await;
    let mut bystander = Bystander(Command::new("sleep").arg("600").spawn().unwrap());
    let host = identify(i32::try_from(bystander.0.id()).unwrap()).unwrap();
    let session = world.active_session(Agent::Gone).await;
    let earlier = BootId("an earlier boot".to_owned());
    taken_by(host, &world, &session.owner, &earlier, Phase::Starting);
    let stop = Event {
        body: "the-loop stop".to_owned(),
        ..comment(ITEM, 1)
    };
    let stop = world.command(stop).await;

    world.work().await;

    assert_eq!(world.state(stop).await, DeliveryState::Delivered);
    assert_eq!(world.session().await, None);
    assert!(bystander.0.try_wait().unwrap().is_none(), "it goes on");
}
