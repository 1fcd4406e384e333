from creole_gateway import main

main()
