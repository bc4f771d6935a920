/** `make soak` repeats randomized tests and races many times; the ordinary suites repeat them a few times. */
export const isThorough = Boolean(process.env["SOAK"]);

/**
 * False if `make soak` lets the clock jump by half a minute. A token that lives for seconds then ends before it can be
 * replaced, so a test of one needs a steady clock.
 */
export const isClockSteady = process.env["FAKETIME_TIMESTAMP_FILE"] === undefined;

/** How many times longer everything may take on the machine that `make soak` disturbs. */
export const patience = isThorough ? 4 : 1;
