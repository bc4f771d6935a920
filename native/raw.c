/*
 * podbot-raw — makes the terminal on descriptor 0 raw, wholly. Node's own raw mode leaves the treatment of output on,
 * which makes a new line of each line feed of a program that draws; and it restores what was before.
 */
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

int main(void) {
    struct termios settings;
    if (tcgetattr(STDIN_FILENO, &settings) != 0) {
        perror("podbot-raw");
        return 125;
    }
    cfmakeraw(&settings);
    return tcsetattr(STDIN_FILENO, TCSADRAIN, &settings) == 0 ? 0 : 125;
}
