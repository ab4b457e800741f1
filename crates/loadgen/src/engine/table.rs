//! A table whose places are used again, with keys that tell an old tenant from a new one.

/// The key of a value: it finds nothing once the value is gone, even if its place is taken again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    place: u32,
    generation: u32,
}

impl Key {
    /// Returns the key as one number.
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.place)
    }

    /// Returns the key that a number stands for.
    pub(crate) fn from_bits(bits: u64) -> Self {
        let low = u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        let high = u32::try_from(bits >> 32).unwrap_or(u32::MAX);
        Self { place: low, generation: high }
    }
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Table<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Table<T> {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Adds a value.
    pub(crate) fn insert(&mut self, value: T) -> Key {
        if let Some(place) = self.free.pop()
            && let Some(found) = self.places.get_mut(place as usize)
        {
            found.value = Some(value);
            return Key { place, generation: found.generation };
        }
        let place = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        self.places.push(Place { generation: 0, value: Some(value) });
        Key { place, generation: 0 }
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.places.get_mut(key.place as usize)?;
        if place.generation == key.generation { place.value.as_mut() } else { None }
    }

    /// Takes a value out.
    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.places.get_mut(key.place as usize)?;
        if place.generation != key.generation {
            return None;
        }
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(key.place);
        Some(value)
    }

    /// Returns the keys of all values.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let taken = (0..).zip(&self.places).filter(|(_, place)| place.value.is_some());
        taken.map(|(place, found)| Key { place, generation: found.generation }).collect()
    }

    /// Returns each value with its key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        (0..)
            .zip(&self.places)
            .filter_map(|(place, found)| Some((Key { place, generation: found.generation }, found.value.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_key_finds_nothing_in_a_place_that_is_taken_again() {
        let mut table = Table::new();
        let (a, b) = (table.insert('a'), table.insert('b'));
        assert_eq!(table.remove(a), Some('a'));
        let c = table.insert('c');
        assert_eq!(table.get_mut(a), None);
        assert_eq!(table.remove(a), None);
        assert_eq!([b, c].map(|key| table.get_mut(key).copied()), [Some('b'), Some('c')]);
        assert_eq!(Key::from_bits(c.to_bits()), c);
        assert_eq!(table.keys().len(), 2);
        assert_eq!(table.iter().map(|(_, value)| *value).collect::<String>(), "cb");
    }
}
