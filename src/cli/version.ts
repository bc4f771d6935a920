/** Equal to package.json's; a test holds the two together. */
export const version = "0.1.0";
