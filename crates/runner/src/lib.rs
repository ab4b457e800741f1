//! Makes things happen: environments, servers, load and blocks of launches.
