/** `make soak` repeats randomized tests and races many times; the ordinary suites repeat them a few times. */
export const isThorough = Boolean(process.env["SOAK"]);

/** How many times longer everything may take on the machine that `make soak` disturbs. */
export const patience = isThorough ? 4 : 1;
