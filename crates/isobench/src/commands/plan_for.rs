//! The devices and choices that a dataset of commits is planned with.

use isobench_plan::assess::{ASSUMED_DEVICE, AssessOptions, OfflineChoice, ProxyChoice};
use isobench_plan::cost::CostSettings;
use isobench_plan::knowledge::Knowledge;
use isobench_plan::nearest::nearest;
use isobench_plan::source::Images;
use isobench_schema::assessment::PlannedFor;
use isobench_schema::facts::{Device, Facts, Host};

use super::history;
use crate::commit_args::{CommitArgs, OfflineArg};
use crate::exit::{CommandError, Exit, WithExit as _};

/// MiB in a GB (10^9 bytes).
const MIB_PER_GB: f64 = 1e9 / 1024.0 / 1024.0;

/// Returns what commits are assessed with. A device that is named takes the place of this machine's in the facts, and what
/// is not known of its machine leaves them.
pub(super) fn options(args: &CommitArgs, images: Images, facts: &mut Facts) -> Result<AssessOptions, CommandError> {
    let knowledge = Knowledge::embedded();
    let preset = args.workload.as_deref().map(|name| knowledge.presets.find(name).cloned());
    let preset = preset.transpose().map_err(|error| {
        CommandError::from_error(Exit::Usage, error).hint("a preset stands in for the command of tasks that have none")
    })?;
    Ok(AssessOptions {
        planned_for: planned_for(args, facts)?,
        preset,
        proxy: if args.proxy { ProxyChoice::WhereTooLarge } else { ProxyChoice::Never },
        offline: match args.offline {
            OfflineArg::Auto => OfflineChoice::WhereNeeded,
            OfflineArg::Script => OfflineChoice::Always,
            OfflineArg::Server => OfflineChoice::Never,
        },
        images,
        history: history::read(&args.history)?,
        cost: CostSettings { device_usd_per_hour: args.price, ..CostSettings::default() },
    })
}

fn planned_for(args: &CommitArgs, facts: &mut Facts) -> Result<PlannedFor, CommandError> {
    let devices = &Knowledge::embedded().devices;
    if let Some(name) = &args.device {
        let Some(device) = devices.find(name) else {
            let known = devices.ids().collect::<Vec<_>>().join(", ");
            let near = nearest(name, devices.ids()).map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            return Err(CommandError::new(Exit::Usage, format!("unknown device `{name}`"))
                .hint(format!("{near}known devices: {known}")));
        };
        let count = args.devices.unwrap_or(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "no device has 2^64 MiB or less than none"
        )]
        let memory_mib = (device.memory_gb * MIB_PER_GB) as u64;
        let one = Device { name: device.name.clone(), memory_mib, driver: "not known".to_owned() };
        facts.image_disk_mib = None;
        facts.host = Host { devices: vec![one; usize::try_from(count).exit(Exit::Usage)?], ..Host::default() };
        return Ok(PlannedFor { device: device.id.clone(), count, assumed: false });
    }
    let own = facts.host.devices.first().and_then(|device| devices.find(&device.name));
    match own {
        Some(device) => {
            let here = u32::try_from(facts.host.devices.len()).exit(Exit::Machine)?;
            Ok(PlannedFor { device: device.id.clone(), count: args.devices.unwrap_or(here), assumed: false })
        }
        None => Ok(PlannedFor { device: ASSUMED_DEVICE.to_owned(), count: args.devices.unwrap_or(1), assumed: true }),
    }
}
