//! Values that can be written in more than one way. Each names the notations it takes; serde's own choice between
//! variants would only say that nothing matched.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Error, MapAccess, Visitor};

/// Reads a value that has several notations. Notations that are not overridden are refused with `WHAT`.
pub trait Notations: Sized {
    /// What may be written, with examples.
    const WHAT: &'static str;
    /// From text.
    fn text<E: Error>(text: &str) -> Result<Self, E>;
    /// From a number.
    fn number<E: Error>(number: f64) -> Result<Self, E> {
        Err(E::invalid_type(de::Unexpected::Float(number), &Self::WHAT))
    }
    /// From a whole number.
    fn integer<E: Error>(number: i64) -> Result<Self, E> {
        Self::number(number as f64).map_err(|_: E| E::invalid_type(de::Unexpected::Signed(number), &Self::WHAT))
    }
    /// From a table.
    fn table<'de, A: MapAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(de::Unexpected::Map, &Self::WHAT))
    }
}

/// Reads a `T` in any of its notations.
pub struct NotationReader<T>(PhantomData<T>);

impl<T> Default for NotationReader<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: Notations> Visitor<'de> for NotationReader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::text(text)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::integer(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        i64::try_from(number).map_or_else(|_| T::number(number as f64), T::integer)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        T::number(number)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::table(map)
    }
}

/// Implements `Deserialize` for types that implement [`Notations`].
#[macro_export]
macro_rules! read_by_notations {
    ($($type:ty),*) => {$(
        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any($crate::NotationReader::<$type>::default())
            }
        }
    )*};
}
