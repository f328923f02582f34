#pragma once
/* siteroute - routes of the API about the ports and services of a sandbox. */
#include "http/webcall.h"

webcall_args_fn siteroute_decode_service, siteroute_decode_access, siteroute_decode_link;
webcall_tell_fn siteroute_encode_link;
