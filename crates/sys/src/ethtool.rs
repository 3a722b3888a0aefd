//! Ethtool ioctls: driver, statistics, features, rings.
