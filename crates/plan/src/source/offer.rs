//! What each rung offers one arm, before the first one is taken.

use isobench_schema::assessment::{RungAnswer, RungVerdict};
use isobench_schema::environment::Rung;

use super::RUNGS;

/// What a rung offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    /// Whether it serves; else the reason says why not.
    pub(super) serves: Serves,
    /// The image, wheel or release.
    pub(super) artifact: Option<String>,
    /// Why.
    pub(super) reason: String,
}

/// Whether a rung serves an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Serves {
    /// It does.
    Yes,
    /// It doesn't.
    No,
}

impl Offer {
    pub(super) fn yes(artifact: Option<String>, reason: impl Into<String>) -> Self {
        Self { serves: Serves::Yes, artifact, reason: reason.into() }
    }

    pub(super) fn no(artifact: Option<String>, reason: impl Into<String>) -> Self {
        Self { serves: Serves::No, artifact, reason: reason.into() }
    }
}

/// What every rung offers one arm.
#[derive(Debug, Clone)]
pub(super) struct Offers {
    rungs: [(Rung, Offer); 5],
}

impl Offers {
    pub(super) fn new(offer: impl Fn(Rung) -> Offer) -> Self {
        Self { rungs: RUNGS.map(|rung| (rung, offer(rung))) }
    }

    /// Returns the first rung that serves.
    pub(super) fn best(&self) -> Option<Rung> {
        self.rungs.iter().find(|(_, offer)| offer.serves == Serves::Yes).map(|(rung, _)| *rung)
    }

    /// Withdraws what the rungs above one offer.
    pub(super) fn withdraw_above(&mut self, kept: Rung, reason: &str) {
        for (_, offer) in self.rungs.iter_mut().take_while(|(rung, _)| *rung != kept) {
            if offer.serves == Serves::Yes {
                *offer = Offer::no(offer.artifact.take(), reason);
            }
        }
    }

    /// Takes the first rung that serves.
    pub(super) fn answers(self) -> Vec<RungAnswer> {
        let best = self.best();
        let mut above = best.is_some();
        let answer = |(rung, offer): (Rung, Offer)| {
            let answer = match offer.serves {
                _ if Some(rung) == best => RungVerdict::Taken,
                _ if best.is_some() && !above => RungVerdict::NotNeeded,
                Serves::Yes | Serves::No => RungVerdict::Refused,
            };
            above = above && Some(rung) != best;
            let reason = match answer {
                RungVerdict::NotNeeded => "a rung above it is taken".to_owned(),
                RungVerdict::Taken | RungVerdict::Refused => offer.reason,
            };
            let artifact = offer.artifact.filter(|_| answer != RungVerdict::NotNeeded);
            RungAnswer { rung, answer, artifact, reason }
        };
        self.rungs.into_iter().map(answer).collect()
    }
}
