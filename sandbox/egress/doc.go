// Package egress is the only way out of a sandbox: a proxy in the worker, on a listener that was opened inside
// the sandbox's empty network and handed out. Who speaks is known by the descriptor, so that nothing
// authenticates and nothing can be forged. It imports the standard library alone and is usable by itself.
//
//	accepted --CONNECT--> judged --> resolved, pinned --> 200 --+--> intercepted: each request judged --> sent
//	    |                   |            |                      +--> tunnel: ClientHello judged --> spliced
//	    |                   v            v                      v
//	    +--GET http://--> refused (403, recorded, counted) <----+ SNI, ECH, Host, method, path, ...
//
// Towards the client an intercepted connection offers HTTP/1.1 alone by ALPN: one request at a time is judged,
// and there is no second way to name a host. A client that speaks nothing but HTTP/2 needs a tunnel rule.
//
// What holds in every tier: names are resolved here alone, once for a connection, and the address is pinned;
// private, local and special addresses, and the worker's own, are refused after resolution. Sizes are bytes.
package egress
