package session

// Tune is tune for tests.
var Tune = tune
