//! Tells the run's record of the long steps of a launch's preparation.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use isobench_schema::event::LaunchStage;
use isobench_schema::ids::LaunchId;

use crate::environment::Steps;
use crate::sink::{Sink, SinkError};

/// A launch and the sink that its stages go to.
pub(super) struct LaunchSteps<'a> {
    launch: &'a LaunchId,
    sink: Mutex<&'a mut dyn Sink>,
}

impl<'a> LaunchSteps<'a> {
    pub(super) fn new(launch: &'a LaunchId, sink: &'a mut dyn Sink) -> Self {
        Self { launch, sink: Mutex::new(sink) }
    }

    /// Gives the sink back.
    pub(super) fn into_sink(self) -> &'a mut dyn Sink {
        self.sink.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Steps for LaunchSteps<'_> {
    fn native_build_begins(&self) -> Result<(), SinkError> {
        // A thread that panicked has told all that it could.
        self.sink.lock().unwrap_or_else(PoisonError::into_inner).stage(self.launch, LaunchStage::NativeBuild)
    }
}

impl fmt::Debug for LaunchSteps<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LaunchSteps").field("launch", self.launch).finish_non_exhaustive()
    }
}
