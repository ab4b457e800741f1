//! Boundaries against the methodology's figures, against independent calculations, and by simulation.

use isobench_schema::order::default_schedule;
use isobench_schema::plan::Look;

use super::chain::Chain;
use super::table::{StoredBoundary, looks, stored_boundaries};
use super::*;

const DEFAULT: [u32; 4] = [6, 10, 16, 24];

fn boundary(sides: Sides, spending: Spending, blocks: &[u32]) -> Boundary {
    Boundary::spending(sides, spending, 0.05, &Interim::schedule(blocks)).unwrap()
}

#[test]
fn the_usual_levels_are_those_of_the_methodology() {
    for (spending, figures) in [
        (Spending::Pocock, [0.018, 0.013, 0.016, 0.019]),
        (Spending::OBrienFleming, [0.000_09, 0.0024, 0.0152, 0.0422]),
    ] {
        let levels = boundary(Sides::Two, spending, &DEFAULT).levels();
        for (level, figure) in levels.iter().zip(figures) {
            assert!((level / figure - 1.0).abs() < 0.04, "{spending:?}: {levels:?}");
        }
        // The figures as they are printed, rounded, have an error of 4.998 % and 5.010 %.
        let printed: Vec<(u32, f64)> = DEFAULT.into_iter().zip(figures).collect();
        let error = Boundary::of_levels(Sides::Two, &printed).unwrap().error();
        assert!((error - 0.05).abs() < 0.000_15, "{spending:?}: {error}");
    }
}

#[test]
fn what_is_asked_to_be_spent_is_spent() {
    for sides in [Sides::One, Sides::Two] {
        for blocks in [&DEFAULT[..], &[6, 12, 18, 24], &[5, 6, 7, 9], &[3, 4, 20], &[12], &[10, 100, 1000]] {
            let looks = Interim::schedule(blocks);
            let found = Boundary::spending(sides, Spending::Pocock, 0.05, &looks).unwrap();
            for (spent, look) in found.spent().iter().zip(&looks) {
                let asked = spending::spent(Spending::Pocock, 0.05, look.fraction);
                assert!((spent - asked).abs() < 5e-7, "{sides:?} {blocks:?}: {spent} instead of {asked}");
            }
        }
    }
}

/// Whatever the boundary, those who cross at a look and those who never did are all.
#[test]
fn nobody_is_lost_on_the_way_back() {
    for sides in [Sides::One, Sides::Two] {
        for looks in
            [&[(6, 0.3), (7, 0.2)][..], &[(6, 0.02), (8, 0.1), (9, 0.2), (30, 0.01)], &[(5, 0.05), (200, 0.05)]]
        {
            let found = Boundary::of_levels(sides, looks).unwrap();
            // The power without an effect is one less those who never crossed, the error the sum of those who first did.
            assert!((found.power(0.0) - found.error()).abs() < 1e-6, "{sides:?} {looks:?}: {}", found.power(0.0));
        }
    }
}

#[test]
fn with_many_differences_the_levels_are_those_of_normal_differences() {
    for (sides, spending, expected) in NORMAL {
        let levels = boundary(sides, spending, &[2000, 4000, 6000, 8000, 10_000]).levels();
        for (level, expected) in levels.iter().zip(expected) {
            assert!((level / expected - 1.0).abs() < 0.01, "{sides:?} {spending:?}: {levels:?}");
        }
    }
}

// By recursive integration over the sum of normal differences on a grid of 4001 points in NumPy; those of Pocock's type
// are z = 2.438, 2.427, 2.410, 2.397, 2.386.
const NORMAL: [(Sides, Spending, [f64; 5]); 4] = [
    (Sides::Two, Spending::Pocock, [0.014_769_7, 0.015_232_1, 0.015_944_0, 0.016_545_9, 0.017_033_5]),
    (Sides::Two, Spending::OBrienFleming, [1.172_64e-5, 0.001_936_99, 0.010_669_1, 0.024_205_7, 0.039_065_1]),
    (Sides::One, Spending::Pocock, [0.014_769_7, 0.016_026_6, 0.017_288_2, 0.018_326_9, 0.019_179_5]),
    (Sides::One, Spending::OBrienFleming, [1.172_64e-5, 0.001_937_66, 0.010_778_3, 0.024_891_7, 0.040_955_5]),
];

#[test]
fn levels_are_those_of_an_independent_simulation() {
    for (sides, looks, levels, spent) in SIMULATED {
        let looks: Vec<(u32, f64)> = looks.iter().copied().zip(levels.iter().copied()).collect();
        let found = Boundary::of_levels(sides, &looks).unwrap().spent();
        for (found, spent) in found.iter().zip(spent) {
            assert!((found - spent).abs() < 0.000_15, "{sides:?} {looks:?}: {found} instead of {spent}");
        }
    }
}

/// The sides, the looks, their levels, and what was spent when each was over.
type Simulated = (Sides, &'static [u32], &'static [f64], &'static [f64]);

// From 20,000,000 samples of normal numbers in NumPy, numpy.random.default_rng(20261128): the share of samples whose t at
// some look so far is beyond scipy.stats.t.isf of the level. The standard error of 5 % is 0.000,05.
const SIMULATED: [Simulated; 6] = [
    (Sides::Two, &DEFAULT, &[0.018, 0.013, 0.016, 0.019], &[0.018_029, 0.027_153, 0.038_275, 0.049_966]),
    (Sides::Two, &DEFAULT, &[0.000_09, 0.0024, 0.0152, 0.0422], &[0.000_095, 0.002_473, 0.016_689, 0.050_085]),
    (Sides::One, &[6, 12, 18, 24], &[0.02; 4], &[0.020_006, 0.034_840, 0.045_634, 0.054_037]),
    (Sides::Two, &[3, 4, 5, 7], &[0.03; 4], &[0.030_055, 0.049_257, 0.063_975, 0.080_297]),
    (Sides::One, &[5, 6, 7, 12], &[0.05, 0.03, 0.01, 0.04], &[0.050_014, 0.054_594, 0.054_594, 0.080_324]),
    (Sides::Two, &[6, 8, 9, 30], &[0.02, 0.05, 0.05, 0.01], &[0.020_022, 0.058_855, 0.074_542, 0.081_100]),
];

#[test]
fn the_default_design_keeps_its_error_in_a_simulation() {
    let nothing = Truth { effect: 0.0, deviation: 1.0 };
    for &spending in Spending::ALL {
        for blocks in [&DEFAULT[..], &[6, 12, 18, 24], &[8, 12, 16, 24], &[10, 20, 30]] {
            let rates = simulate(&looks(spending, blocks).unwrap(), 0.0, nothing, 60_000, 7).unwrap();
            // Three standard errors of 5 % are 0.27 %.
            assert!((rates.significant - 0.05).abs() < 0.0027, "{spending:?} {blocks:?}: {rates:?}");
        }
    }
}

#[test]
fn a_difference_of_exactly_the_margin_is_called_equivalent_in_five_percent_at_most() {
    let margin = 0.02;
    for (deviation, is_tight) in [(0.001, true), (0.01, true), (0.02, false), (0.05, false)] {
        let truth = Truth { effect: margin, deviation };
        let rates = simulate(&looks(Spending::Pocock, &DEFAULT).unwrap(), margin, truth, 40_000, 8).unwrap();
        let found = rates.equivalent + rates.trivial;
        assert!(found < 0.0535, "{deviation}: {found}");
        // Where the spread is small the levels are no smaller than they need be. A run that ends `better` can't go on to
        // be called equivalent.
        assert!(!is_tight || found > 0.02, "{deviation}: {found}");
    }
    // Four looks at the level of one.
    let naive: Vec<Look> =
        DEFAULT.iter().map(|&blocks| Look { blocks, level: 1e-100, equivalence_level: 0.05 }).collect();
    let found = simulate(&naive, margin, Truth { effect: margin, deviation: 0.005 }, 40_000, 9).unwrap().equivalent;
    assert!((found - 0.12).abs() < 0.01, "{found}");
    let calibrated: Vec<Look> =
        looks(Spending::Pocock, &DEFAULT).unwrap().into_iter().map(|look| Look { level: 1e-100, ..look }).collect();
    let found =
        simulate(&calibrated, margin, Truth { effect: margin, deviation: 0.005 }, 40_000, 9).unwrap().equivalent;
    assert!((found - 0.05).abs() < 0.0033, "{found}");
}

#[test]
fn intervals_at_stopping_cover_as_promised() {
    for &spending in Spending::ALL {
        let looks = looks(spending, &DEFAULT).unwrap();
        for effect in [0.0, 0.3, 0.7, 1.0, 2.0] {
            for margin in [0.0, 0.5] {
                let truth = Truth { effect, deviation: 1.0 };
                let rates = simulate(&looks, margin, truth, 20_000, 10).unwrap();
                assert!(rates.covered > 0.945, "{spending:?} {effect} {margin}: {rates:?}");
            }
        }
    }
}

#[test]
fn power_and_blocks_are_those_of_a_simulation() {
    for &spending in Spending::ALL {
        let calculated = boundary(Sides::Two, spending, &DEFAULT);
        let looks = looks(spending, &DEFAULT).unwrap();
        for effect in [0.3, 0.7, 1.0, 2.0] {
            let rates = simulate(&looks, 0.0, Truth { effect, deviation: 1.0 }, 20_000, 11).unwrap();
            let (power, blocks) = (calculated.power(effect), calculated.mean_blocks(effect));
            assert!((rates.significant - power).abs() < 0.011, "{spending:?} {effect}: {power} {rates:?}");
            assert!((rates.mean_blocks - blocks).abs() < 0.2, "{spending:?} {effect}: {blocks} {rates:?}");
        }
    }
}

/// Against 24 blocks and one look at 5 %: at most so much of its blocks at these effects, in standard deviations.
#[test]
fn looking_early_saves_blocks() {
    let fixed = Boundary::of_levels(Sides::Two, &[(24, 0.05)]).unwrap();
    for (spending, loss) in [(Spending::Pocock, 0.0729), (Spending::Even, 0.0496)] {
        let early = boundary(Sides::Two, spending, &DEFAULT);
        for (effect, share) in [(0.7, 0.75), (1.0, 0.55), (2.0, 0.30)] {
            let found = early.mean_blocks(effect) / 24.0;
            assert!(found <= share, "{spending:?} {effect}: {found}");
        }
        let found = fixed.power(0.7) - early.power(0.7);
        assert!((found - loss).abs() < 0.0005, "{spending:?}: {found}");
    }
}

#[test]
fn the_table_is_what_is_calculated() {
    let rows = stored_boundaries();
    for row in rows {
        assert_eq!(StoredBoundary::calculate(row.spending, &row.looks).as_ref(), Ok(row));
    }
    for &spending in Spending::ALL {
        for set in [2, 4, 6, 10] {
            let wanted = default_schedule(24, set);
            assert!(rows.iter().any(|row| row.spending == spending && row.looks == wanted), "{spending:?} {wanted:?}");
        }
    }
}

#[test]
fn a_look_that_comes_later_than_planned_keeps_the_error() {
    // Blocks were lost: 5, 9, 15 and 22 where 6, 10, 16 and 24 were planned, with the levels of the plan.
    let planned = boundary(Sides::Two, Spending::Pocock, &DEFAULT).levels();
    let lost: Vec<(u32, f64)> = [5, 9, 15, 22].into_iter().zip(planned).collect();
    let error = Boundary::of_levels(Sides::Two, &lost).unwrap().error();
    assert!((error - 0.051).abs() < 0.0005, "{error}");
    // The same with levels for what there is: the last look spends what is left.
    let looks = [(5, 6), (9, 10), (15, 16), (22, 24)]
        .map(|(blocks, planned)| Interim { blocks, fraction: f64::from(planned) / 24.0 });
    let error = Boundary::spending(Sides::Two, Spending::Pocock, 0.05, &looks).unwrap().error();
    assert!((error - 0.05).abs() < 1e-6, "{error}");
}

#[test]
fn schedules_that_are_none_are_refused() {
    let of = |blocks: &[u32]| Boundary::spending(Sides::Two, Spending::Pocock, 0.05, &Interim::schedule(blocks));
    assert_eq!(of(&[]), Err(BoundaryError::NoLooks));
    assert_eq!(of(&[2, 6]), Err(BoundaryError::TooEarly { blocks: 2 }));
    assert_eq!(of(&[6, 6]), Err(BoundaryError::NotLater { blocks: 6, before: 6 }));
    assert_eq!(of(&[6, 20_000]), Err(BoundaryError::TooLate { blocks: 20_000 }));
    let unordered = [Interim { blocks: 6, fraction: 0.5 }, Interim { blocks: 12, fraction: 0.4 }];
    let found = Boundary::spending(Sides::Two, Spending::Pocock, 0.05, &unordered);
    assert_eq!(found, Err(BoundaryError::Information { blocks: 12, fraction: 0.4 }));
    for level in [0.0, 0.5, f64::NAN, -1.0] {
        assert!(Boundary::of_levels(Sides::Two, &[(6, level)]).is_err(), "{level}");
        assert!(Boundary::spending(Sides::Two, Spending::Pocock, level, &Interim::schedule(&[6])).is_err(), "{level}");
    }
}

#[test]
fn a_boundary_that_cannot_be_reached_takes_nothing() {
    let mut chain = Chain::new(Sides::Two);
    for (blocks, level) in [(6, 0.4), (7, 1e-9), (8, 0.2)] {
        chain.pass(blocks, level);
    }
    let spent: Vec<f64> = chain.into_passed().iter().map(|look| look.spent).collect();
    assert!((spent[1] - spent[0]).abs() < 1e-8 && spent[2] > spent[1], "{spent:?}");
}
