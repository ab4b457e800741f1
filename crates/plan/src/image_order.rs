//! The order of tasks that run from images: those whose images begin with the same layers come next to each other, so that what
//! they share is fetched once and can go before the next ones come.
//!
//! The order of tasks decides nothing that is measured: what must be random, the order of launches, is drawn within each task's
//! blocks from the task's own seed.

use std::collections::BTreeMap;

use isobench_schema::ids::ImageDigest;
use isobench_schema::plan::PlannedTask;

/// The layers that images begin with, as a tree; the children of each in the order in which the tasks name them.
#[derive(Debug, Default)]
struct Shared<'t> {
    /// By a node and the next layer: the place among its children, and the node that follows.
    next: BTreeMap<(usize, &'t ImageDigest), (usize, usize)>,
    /// How many children each node has.
    children: Vec<usize>,
}

impl<'t> Shared<'t> {
    fn new() -> Self {
        Self { next: BTreeMap::new(), children: vec![0] }
    }

    /// Returns the next place among a node's children.
    fn place(&mut self, node: usize) -> usize {
        let Some(count) = self.children.get_mut(node) else { return 0 };
        *count += 1;
        *count - 1
    }

    /// Returns the way to an image: the place at each layer.
    fn way(&mut self, task: &'t PlannedTask) -> Vec<usize> {
        let first = task.images.first().filter(|image| !image.layers.is_empty());
        let Some(image) = first else { return vec![self.place(0)] };
        let (mut way, mut node) = (Vec::new(), 0);
        for layer in &image.layers {
            let key = (node, &layer.digest);
            let (place, next) = if let Some(known) = self.next.get(&key) {
                *known
            } else {
                let found = (self.place(node), self.children.len());
                self.children.push(0);
                self.next.insert(key, found);
                found
            };
            way.push(place);
            node = next;
        }
        way
    }
}

/// Returns tasks in their order, but for those whose images share layers with an earlier task's: they come right after it, the
/// nearest first.
pub(crate) fn by_layers(tasks: Vec<PlannedTask>) -> Vec<PlannedTask> {
    let mut shared = Shared::new();
    let ways: Vec<Vec<usize>> = tasks.iter().map(|task| shared.way(task)).collect();
    let mut placed: Vec<(Vec<usize>, PlannedTask)> = ways.into_iter().zip(tasks).collect();
    placed.sort_by(|(one, _), (other, _)| one.cmp(other));
    placed.into_iter().map(|(_, task)| task).collect()
}
