//! The t statistics of one growing sample, followed exactly.
//!
//! Let n differences be independent and normal with mean zero, S their sum, Q the sum of their squares, and the *angle*
//! φ = asin(S/√(n Q)), so that t = √(n − 1) tan φ. The direction of the sample is uniform on the sphere whatever its
//! spread is, so that φ has the density cos^(n−2) φ / B(1/2, (n−1)/2). Q is complete and sufficient for the spread, and
//! by Basu's theorem (1955) independent of the angles at all looks up to n; what comes after n depends on the past
//! through (S, Q) only. So the angles at successive looks are a Markov chain: one dimension is enough, and nothing has to
//! be simulated.
//!
//! The chain is followed backwards. Given the angle φ at N differences, let τ = tan φ. The rest of the sample's direction
//! is uniform on the sphere of N − 1 dimensions: one of them is the contrast of the first n with the last m = N − n
//! differences (its angle ψ has the density cos^(N−3) ψ / B(1/2, (N−2)/2)), n − 1 lie within the first and m − 1 within
//! the last differences; the first ones' share of the latter two is cos² η with the density 2 sin^(m−2) η cos^(n−2) η /
//! B((m−1)/2, (n−1)/2). With a² = n/N and b² = m/N the tangent at n is
//!
//! > (a τ + b sin ψ)/(cos ψ cos η).
//!
//! So the probability that no look before crossed its boundary, given the angle at this look ([`Passed::unseen`]), is the
//! mean over ψ and η of the same function of the look before, taken where that look didn't cross. For each η that is a
//! range of ψ with ends in closed form, and the integrand is smooth between them: Gauss' quadrature gives seven digits. A look
//! first crosses with the probability that this function integrates to, over the angles beyond its boundary.
//!
//! Recursive integration over looks is Armitage, `McPherson` and Rowe's (1969, JRSS A 132:235); doing it for t without an
//! approximation follows from the above.

use std::f64::consts::{FRAC_PI_2, LN_2, PI};

use statrs::function::beta::{beta_reg, ln_beta};

use super::super::quadrature::{Curve, Rule, bend, bend_slope, unbend};

/// On which sides a boundary stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    /// Above only; levels are one-sided.
    One,
    /// Above and, mirrored, below; levels are two-sided.
    Two,
}

impl Sides {
    fn count(self) -> f64 {
        match self {
            Self::One => 1.0,
            Self::Two => 2.0,
        }
    }
}

/// Points of a curve over angles.
const CURVE: usize = 32;

/// A boundary never stands at a smaller level: nobody could tell it from none, and quantiles lose their digits.
pub(super) const LEAST_LEVEL: f64 = 1e-9;

/// How far from its middle a density that is at least as narrow as a normal one of variance 1/κ is followed, in 1/√κ: what
/// lies beyond is below 10^-12.
const REACH: f64 = 7.5;

/// A look that is passed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Passed {
    /// How many differences there were.
    pub(super) blocks: u32,
    /// The level: one- or two-sided as the boundary is.
    pub(super) level: f64,
    /// The probability under no difference that this look or one before crossed.
    pub(super) spent: f64,
    /// The angle at which the boundary stands.
    pub(super) angle: f64,
    /// The lowest and the highest angle that is followed: the boundary, or what can be reached at all.
    pub(super) floor: f64,
    pub(super) top: f64,
    /// The probability that no look before crossed, by this look's angle, between `floor` and `top`.
    pub(super) unseen: Curve,
}

/// Looks, one after the other.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    sides: Sides,
    /// For η, whose range may end in a square root; for ψ; and for the angles beyond a boundary.
    shares: Rule,
    contrasts: Rule,
    tail: Rule,
    passed: Vec<Passed>,
}

impl Chain {
    pub(super) fn new(sides: Sides) -> Self {
        Self { sides, shares: Rule::gentle(40), contrasts: Rule::new(32), tail: Rule::new(48), passed: Vec::new() }
    }

    pub(super) fn into_passed(self) -> Vec<Passed> {
        self.passed
    }

    /// Adds a look at the level with which `spent` of the error is used up when it is passed.
    pub(super) fn spend(&mut self, blocks: u32, spent: f64) {
        let level = match self.passed.last() {
            None => spent,
            Some(before) => self.level(before, blocks, spent),
        };
        self.pass(blocks, rounded(level.max(LEAST_LEVEL)));
    }

    /// Adds a look at a level.
    pub(super) fn pass(&mut self, blocks: u32, level: f64) {
        let angle = angle_of(self.tails(level), blocks);
        let back = self.passed.last().map(|before| Back::new(self, before, blocks));
        let top = back.as_ref().map_or(angle, |back| angle.min(back.farthest()));
        let floor = match self.sides {
            Sides::One => -reach(f64::from(blocks) - 2.0),
            Sides::Two => -top,
        };
        let (spent, unseen) = match back {
            None => (level, Curve::constant(1.0)),
            Some(back) => {
                let unseen = |angle: f64| back.unseen(angle.tan());
                let curve = match self.sides {
                    Sides::One => Curve::through(floor, top, CURVE, unseen),
                    Sides::Two => Curve::symmetric(top, CURVE, unseen),
                };
                (back.before.spent + self.beyond(&Tail::new(&back, angle, angle), angle), curve)
            }
        };
        self.passed.push(Passed { blocks, level, spent, angle, floor, top, unseen });
    }

    /// Returns the level at which `spent` is used up.
    fn level(&self, before: &Passed, blocks: u32, spent: f64) -> f64 {
        let increment = spent - before.spent;
        // It lies between what is spent now and all that was spent: some of those who cross now did so before.
        let mut low = angle_of(self.tails(spent), blocks);
        let mut high = angle_of(self.tails(increment.max(LEAST_LEVEL)), blocks);
        let tail = Tail::new(&Back::new(self, before, blocks), low, high);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.beyond(&tail, middle) > increment { low = middle } else { high = middle }
        }
        two_tails(f64::midpoint(low, high), blocks) * self.sides.count() / 2.0
    }

    /// Returns the two-sided level with the same angle as a level of this boundary.
    fn tails(&self, level: f64) -> f64 {
        level * 2.0 / self.sides.count()
    }

    /// Returns the probability that this look is the first to cross at `angle`.
    fn beyond(&self, tail: &Tail, angle: f64) -> f64 {
        if tail.half <= 0.0 {
            return 0.0;
        }
        let from = unbend((angle - tail.middle) / tail.half);
        let mass = self.tail.integrate(from, 1.0, |w| {
            tail.unseen.at(w) * density(tail.middle + tail.half * bend(w), tail.blocks) * bend_slope(w)
        });
        self.sides.count() * tail.half * mass
    }
}

/// The angles beyond a boundary, by w with φ = middle + half (3w − w³)/2: where nothing is left that an earlier look
/// hasn't taken, the function may end in a square root.
struct Tail {
    blocks: u32,
    middle: f64,
    half: f64,
    unseen: Curve,
}

impl Tail {
    /// Takes the angles from `low` on, in enough detail for any boundary up to `high`.
    fn new(back: &Back<'_>, low: f64, high: f64) -> Self {
        let top = (high + REACH / (back.later - 2.0).sqrt()).min(back.farthest());
        let (middle, half) = (f64::midpoint(low, top), (top - low) / 2.0);
        let unseen = |w: f64| back.unseen((middle + half * bend(w)).tan());
        Self { blocks: back.blocks, middle, half, unseen: Curve::through(-1.0, 1.0, CURVE, unseen) }
    }
}

/// The way from a look back to the one before.
struct Back<'a> {
    chain: &'a Chain,
    before: &'a Passed,
    blocks: u32,
    /// n, the differences at the look before; m, those added; N, all.
    earlier: f64,
    added: f64,
    later: f64,
    /// a, b, and T: the tangent of the boundary before, or of what could be reached of it.
    kept: f64,
    fresh: f64,
    wall: f64,
    /// The logarithms of the integrals of cos^(N−3) ψ and of sin^(m−2) η cos^(n−2) η.
    contrast_total: f64,
    share_total: f64,
    /// Where the density of η lies.
    share_low: f64,
    share_high: f64,
}

impl<'a> Back<'a> {
    fn new(chain: &'a Chain, before: &'a Passed, blocks: u32) -> Self {
        let (earlier, later) = (f64::from(before.blocks), f64::from(blocks));
        let added = later - earlier;
        // The density of η has its mode where tan² η = (m − 2)/(n − 2), and its logarithm a second derivative of
        // −(√(m − 2) + √(n − 2))² at most.
        let (up, across) = ((added - 2.0).max(0.0).sqrt(), (earlier - 2.0).sqrt());
        let (mode, width) = (up.atan2(across), REACH / (up + across));
        Self {
            chain,
            before,
            blocks,
            earlier,
            added,
            later,
            kept: (earlier / later).sqrt(),
            fresh: (added / later).sqrt(),
            wall: before.top.tan(),
            contrast_total: ln_beta(0.5, (later - 2.0) / 2.0),
            share_total: if added > 1.5 { ln_beta((added - 1.0) / 2.0, (earlier - 1.0) / 2.0) - LN_2 } else { 0.0 },
            share_low: (mode - width).max(0.0),
            share_high: (mode + width).min(FRAC_PI_2),
        }
    }

    /// Returns √(b² + T²).
    fn span(&self) -> f64 {
        self.fresh.hypot(self.wall)
    }

    /// Returns the largest angle that can be reached without having crossed at the look before.
    fn farthest(&self) -> f64 {
        (self.span() / self.kept).atan()
    }

    /// Returns the probability that no look before crossed, given this look's tangent.
    fn unseen(&self, tangent: f64) -> f64 {
        // With one difference added, none lies within the added ones, and η is zero.
        if self.added < 1.5 {
            return self.contrasts(tangent, 1.0);
        }
        let high = self.share_high.min(self.last_share(tangent));
        if high <= self.share_low {
            return 0.0;
        }
        self.chain.shares.integrate(self.share_low, high, |eta| {
            let (sine, cosine) = eta.sin_cos();
            let weight = (self.added - 2.0) * sine.ln() + (self.earlier - 2.0) * cosine.ln() - self.share_total;
            weight.exp() * self.contrasts(tangent, cosine)
        })
    }

    /// Returns the largest η for which the look before can be inside its boundary for some ψ: a² τ² < b² + T² cos² η.
    fn last_share(&self, tangent: f64) -> f64 {
        let pull = self.kept * tangent;
        let is_held = match self.chain.sides {
            Sides::One => pull <= self.fresh,
            Sides::Two => pull.abs() <= self.fresh,
        };
        if is_held {
            return FRAC_PI_2;
        }
        ((pull * pull - self.fresh * self.fresh).sqrt() / self.wall).min(1.0).acos()
    }

    /// Returns the mean over ψ for one cos η.
    fn contrasts(&self, tangent: f64, share: f64) -> f64 {
        let (low, high) = self.inside(tangent, self.wall * share);
        if low >= high {
            return 0.0;
        }
        self.chain.contrasts.integrate(low, high, |psi| {
            let (sine, cosine) = psi.sin_cos();
            let weight = ((self.later - 3.0) * cosine.ln() - self.contrast_total).exp();
            let earlier = (self.kept * tangent + self.fresh * sine) / (cosine * share);
            weight * self.before.unseen.at(earlier.atan())
        })
    }

    /// Returns the ends of ψ between which the look before is inside its boundary, whose tangent times cos η is W.
    ///
    /// It is below it if a τ + b sin ψ < W cos ψ, which is sin(ψ − χ) < −a τ/√(b² + W²) with χ = atan(W/b); above the
    /// mirrored one it is the same with ψ and τ mirrored.
    fn inside(&self, tangent: f64, wall: f64) -> (f64, f64) {
        let pull = self.kept * tangent / self.fresh.hypot(wall);
        let shift = pull.clamp(-1.0, 1.0).asin();
        let turn = wall.atan2(self.fresh);
        let edge = reach(self.later - 3.0);
        let (low, high) = ((turn - PI + shift).max(-edge), (turn - shift).min(edge));
        match self.chain.sides {
            Sides::One => (low, high),
            Sides::Two => (low.max(-turn - shift), high.min(PI - turn + shift)),
        }
    }
}

/// Returns the two-sided p of an angle of `blocks` differences, which is that of t.
pub(super) fn two_tails(angle: f64, blocks: u32) -> f64 {
    beta_reg(f64::from(blocks - 1) / 2.0, 0.5, angle.cos().powi(2))
}

/// Returns the angle of a two-sided p. In the far tail it keeps the digits that a quantile of 1 − p/2 would lose.
pub(super) fn angle_of(two_tails_level: f64, blocks: u32) -> f64 {
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if two_tails(middle, blocks) > two_tails_level { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Returns the density of the angle of `blocks` differences without any mean.
pub(super) fn density(angle: f64, blocks: u32) -> f64 {
    let blocks = f64::from(blocks);
    ((blocks - 2.0) * angle.cos().ln() - ln_beta(0.5, (blocks - 1.0) / 2.0)).exp()
}

/// Returns how far from zero an angle with a density of cos^power lies at most.
fn reach(power: f64) -> f64 {
    (REACH / power.sqrt()).min(FRAC_PI_2)
}

/// Returns a level with the six digits that are kept: plans that hold it are the same whatever computed it.
fn rounded(level: f64) -> f64 {
    // By way of decimals, so that the nearest number to six of them is what comes out.
    format!("{level:.5e}").parse().unwrap_or(level)
}
