//! The reports as people see them, from hand-made judgements, plans and events.

#[cfg(test)]
mod assessed;
#[cfg(test)]
mod assessments;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod live;
#[cfg(test)]
mod load;
#[cfg(test)]
mod load_sample;
#[cfg(test)]
mod noise;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod suite;
#[cfg(test)]
mod suite_sample;
