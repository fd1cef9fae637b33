#include <stdlib.h>

#include "config.h"
#include "daemon.h"
#include "rehearse.h"

int main(int argc, char **argv) {
    pd_config config;
    int code = 2;
    if (pd_rehearse_asked(argc, argv))
        return pd_rehearse(argc, argv);
    switch (pd_config_from_args(&config, argc, argv)) {
    case PD_CONFIG_RUN:
        code = pd_daemon_run(&config, argc, argv);
        break;
    case PD_CONFIG_EXIT:
        code = 0;
        break;
    case PD_CONFIG_FAIL:
        break;
    }
    pd_config_free(&config);
    return code;
}
