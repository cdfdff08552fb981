package main

// maxBody bounds a body that is read whole, here as in build/front.mjs. A message takes six times its size
// on its way (test/limits.mjs measures it), in memory that all objects of an isolate share.
const maxBody = 7 << 20
